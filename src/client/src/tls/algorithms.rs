//! The signatures that a server may use: ring's, ECDSA with P-521, and ECDSA with SHA-512 on P-256 and P-384.
//!
//! ring's schemes are offered first. The other crates receive only public keys and signatures, never a secret. SHA-1 and MD5 are
//! not accepted.

use std::sync::{Arc, LazyLock};

use ring::digest::{self, Algorithm, SHA256, SHA384, SHA512};
use rustls::SignatureScheme;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring as provider_of_ring};
use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id};

type Verification = &'static dyn SignatureVerificationAlgorithm;

static P256_SHA512: Ecdsa =
    Ecdsa { key: alg_id::ECDSA_P256, signature: alg_id::ECDSA_SHA512, hash: &SHA512, verify: verify_p256 };
static P384_SHA512: Ecdsa =
    Ecdsa { key: alg_id::ECDSA_P384, signature: alg_id::ECDSA_SHA512, hash: &SHA512, verify: verify_p384 };
static P521_SHA256: Ecdsa =
    Ecdsa { key: alg_id::ECDSA_P521, signature: alg_id::ECDSA_SHA256, hash: &SHA256, verify: verify_p521 };
static P521_SHA384: Ecdsa =
    Ecdsa { key: alg_id::ECDSA_P521, signature: alg_id::ECDSA_SHA384, hash: &SHA384, verify: verify_p521 };
static P521_SHA512: Ecdsa =
    Ecdsa { key: alg_id::ECDSA_P521, signature: alg_id::ECDSA_SHA512, hash: &SHA512, verify: verify_p521 };

static WITH_SHA512: &[Verification] = &[&P521_SHA512, &P384_SHA512, &P256_SHA512];

static ALL: LazyLock<Vec<Verification>> = LazyLock::new(|| {
    let mut all = of_ring().all.to_vec();
    all.extend(
        [&P256_SHA512, &P384_SHA512, &P521_SHA256, &P521_SHA384, &P521_SHA512].map(|own| own as Verification),
    );
    all
});

/// TLS 1.3 uses the first algorithm of a scheme; TLS 1.2, whose schemes name no curve, the one that fits the key.
static SCHEMES: LazyLock<Vec<(SignatureScheme, &'static [Verification])>> = LazyLock::new(|| {
    let widened = |(scheme, of_ring): &(SignatureScheme, &'static [Verification])| {
        let own = match *scheme {
            SignatureScheme::ECDSA_NISTP256_SHA256 => &P521_SHA256,
            SignatureScheme::ECDSA_NISTP384_SHA384 => &P521_SHA384,
            _ => return (*scheme, *of_ring),
        };
        let mut wider = of_ring.to_vec();
        wider.push(own);
        (*scheme, &*Vec::leak(wider))
    };
    let mut schemes: Vec<_> = of_ring().mapping.iter().map(widened).collect();
    schemes.push((SignatureScheme::ECDSA_NISTP521_SHA512, WITH_SHA512));
    schemes
});

static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    let signature_verification_algorithms = WebPkiSupportedAlgorithms { all: &ALL, mapping: &SCHEMES };
    Arc::new(CryptoProvider { signature_verification_algorithms, ..provider_of_ring::default_provider() })
});

pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::clone(&PROVIDER)
}

fn of_ring() -> WebPkiSupportedAlgorithms {
    provider_of_ring::default_provider().signature_verification_algorithms
}

/// `Some` if the signature is valid.
type Verify = fn(key: &[u8], hash: &[u8], signature: &[u8]) -> Option<()>;

#[derive(Debug)]
struct Ecdsa {
    key: AlgorithmIdentifier,
    signature: AlgorithmIdentifier,
    hash: &'static Algorithm,
    verify: Verify,
}

impl SignatureVerificationAlgorithm for Ecdsa {
    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.key
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.signature
    }

    fn verify_signature(&self, key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), InvalidSignature> {
        let hash = digest::digest(self.hash, message);
        (self.verify)(key, hash.as_ref(), signature).ok_or(InvalidSignature)
    }
}

fn verify_p256(key: &[u8], hash: &[u8], signature: &[u8]) -> Option<()> {
    use p256::ecdsa::signature::hazmat::PrehashVerifier as _;
    use p256::ecdsa::{Signature, VerifyingKey};
    let key = VerifyingKey::from_sec1_bytes(key).ok()?;
    key.verify_prehash(hash, &Signature::from_der(signature).ok()?).ok()
}

fn verify_p384(key: &[u8], hash: &[u8], signature: &[u8]) -> Option<()> {
    use p384::ecdsa::signature::hazmat::PrehashVerifier as _;
    use p384::ecdsa::{Signature, VerifyingKey};
    let key = VerifyingKey::from_sec1_bytes(key).ok()?;
    key.verify_prehash(hash, &Signature::from_der(signature).ok()?).ok()
}

fn verify_p521(key: &[u8], hash: &[u8], signature: &[u8]) -> Option<()> {
    use p521::ecdsa::signature::hazmat::PrehashVerifier as _;
    use p521::ecdsa::{Signature, VerifyingKey};
    const FIELD: usize = 66;
    let key = VerifyingKey::from_sec1_bytes(key).ok()?;
    // Zeros before a hash do not change its number.
    let mut number = [0; FIELD];
    number[FIELD - hash.len()..].copy_from_slice(hash);
    key.verify_prehash(&number, &Signature::from_der(signature).ok()?).ok()
}
