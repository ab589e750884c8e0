//! Reads from a certificate, by Go's rules, what rustls does not: whether it may sign or serve, and when it is valid.

use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use x509_cert::certificate::Version;
use x509_cert::der::oid::{AssociatedOid as _, ObjectIdentifier};
use x509_cert::der::{Decode as _, Encode as _, Header, Reader as _, SliceReader};
use x509_cert::ext::pkix::{
    BasicConstraints, CertificatePolicies, ExtendedKeyUsage, KeyUsage, NameConstraints, SubjectAltName,
};
use x509_cert::time::Time;

const SERVER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
const ANY_PURPOSE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37.0");
const KNOWN: [ObjectIdentifier; 5] = [
    BasicConstraints::OID,
    CertificatePolicies::OID,
    ExtendedKeyUsage::OID,
    KeyUsage::OID,
    SubjectAltName::OID,
];
const SHOWN: usize = 120;

pub(super) struct Certificate<'a> {
    signed: &'a [u8],
    read: x509_cert::Certificate,
}

impl<'a> Certificate<'a> {
    /// `None` if it is not valid X.509.
    pub(super) fn read(der: &'a CertificateDer<'_>) -> Option<Self> {
        let read = x509_cert::Certificate::from_der(der).ok()?;
        let mut reader = SliceReader::new(der).ok()?;
        Header::decode(&mut reader).ok()?;
        let signed = reader.tlv_bytes().ok()?;
        Some(Self { signed, read })
    }

    pub(super) fn subject(&self) -> String {
        shown(&self.read.tbs_certificate().subject().to_string())
    }

    pub(super) fn issuer(&self) -> String {
        shown(&self.read.tbs_certificate().issuer().to_string())
    }

    /// To compare with [`Self::name_of_issuer`].
    pub(super) fn name(&self) -> Option<Box<[u8]>> {
        Some(self.read.tbs_certificate().subject().to_der().ok()?.into())
    }

    pub(super) fn name_of_issuer(&self) -> Option<Box<[u8]>> {
        Some(self.read.tbs_certificate().issuer().to_der().ok()?.into())
    }

    pub(super) fn is_self_issued(&self) -> bool {
        self.names_as_issuer(self)
    }

    pub(super) fn names_as_issuer(&self, issuer: &Self) -> bool {
        self.read.tbs_certificate().issuer() == issuer.read.tbs_certificate().subject()
    }

    pub(super) fn is_authority(&self) -> bool {
        self.constraints().is_some_and(|constraints| constraints.ca)
    }

    /// True for authorities, and for versions before 3, which cannot say it.
    pub(super) fn may_sign(&self) -> bool {
        let extended = self.read.tbs_certificate().version() == Version::V3;
        let usage = self.read.tbs_certificate().get_extension::<KeyUsage>();
        (self.is_authority() || !extended)
            && matches!(usage, Ok(usage) if usage.is_none_or(|(_, usage)| usage.key_cert_sign()))
    }

    /// Has no name constraints, and no unknown critical extension: its rules are covered here.
    pub(super) fn is_simple(&self) -> bool {
        let mut extensions = self.read.tbs_certificate().extensions().into_iter().flatten();
        extensions
            .all(|one| one.extn_id != NameConstraints::OID && (!one.critical || KNOWN.contains(&one.extn_id)))
    }

    /// `authorities`: between it and the server's certificate.
    pub(super) fn allows_below(&self, authorities: usize) -> bool {
        let limit = self.constraints().and_then(|constraints| constraints.path_len_constraint);
        limit.is_none_or(|limit| authorities <= usize::from(limit))
    }

    /// Also true above a server's certificate.
    pub(super) fn may_serve(&self) -> bool {
        match self.read.tbs_certificate().get_extension::<ExtendedKeyUsage>() {
            Ok(None) => true,
            Ok(Some((_, purposes))) => purposes.0.iter().any(|one| [SERVER, ANY_PURPOSE].contains(one)),
            Err(_) => false,
        }
    }

    pub(super) fn begins(&self) -> UnixTime {
        unix(self.read.tbs_certificate().validity().not_before)
    }

    pub(super) fn ends(&self) -> UnixTime {
        unix(self.read.tbs_certificate().validity().not_after)
    }

    pub(super) fn is_in_time(&self, now: UnixTime) -> bool {
        self.begins() <= now && now <= self.ends()
    }

    pub(super) fn signature(&self) -> String {
        self.read.signature_algorithm().oid.to_string()
    }

    pub(super) fn is_signed_by(
        &self,
        issuer: &Self,
        algorithms: &[&'static dyn SignatureVerificationAlgorithm],
    ) -> bool {
        let key = issuer.read.tbs_certificate().subject_public_key_info();
        let (Some(signed_by), Some(kind)) =
            (content(self.read.signature_algorithm().to_der()), content(key.algorithm.to_der()))
        else {
            return false;
        };
        let (Some(key), Some(signature)) =
            (key.subject_public_key.as_bytes(), self.read.signature().as_bytes())
        else {
            return false;
        };
        algorithms.iter().any(|one| {
            *one.signature_alg_id() == *signed_by
                && *one.public_key_alg_id() == *kind
                && one.verify_signature(key, self.signed, signature).is_ok()
        })
    }

    fn constraints(&self) -> Option<BasicConstraints> {
        self.read
            .tbs_certificate()
            .get_extension::<BasicConstraints>()
            .ok()?
            .map(|(_, constraints)| constraints)
    }
}

fn unix(time: Time) -> UnixTime {
    UnixTime::since_unix_epoch(time.to_unix_duration())
}

fn content(sequence: x509_cert::der::Result<Vec<u8>>) -> Option<Vec<u8>> {
    let sequence = sequence.ok()?;
    let mut reader = SliceReader::new(&sequence).ok()?;
    let header = Header::decode(&mut reader).ok()?;
    reader.read_slice(header.length()).ok().map(<[u8]>::to_vec)
}

/// Makes foreign text short, and one line.
fn shown(text: &str) -> String {
    let cut: String = text.chars().filter(|one| !one.is_control()).take(SHOWN).collect();
    if cut.is_empty() { "without a name".to_owned() } else { cut }
}
