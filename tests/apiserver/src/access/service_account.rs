//! Tokens of service accounts: JSON web tokens that the server signs and later accepts.
//!
//! Answers: which token is issued for a service account, and is this one valid?
//! 1. Signed with ES256 by a key made at the start; a token of another server is not valid.
//! 2. Expiry is checked by the server's own clock, and a token ends with its service account, or with the pod it is
//!    bound to.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};

use super::user::User;

/// The issuer, and the audience of tokens that name none: what a cluster has by default.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

const NO_RANDOM: &str = "the system has no random numbers";

/// Signs and checks tokens.
#[derive(Debug)]
pub(crate) struct Signer {
    key: EcdsaKeyPair,
    random: SystemRandom,
}

/// The content of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) aud: Vec<String>,
    pub(crate) exp: i64,
    pub(crate) iat: i64,
    pub(crate) iss: String,
    pub(crate) jti: String,
    #[serde(rename = "kubernetes.io")]
    pub(crate) about: About,
    pub(crate) nbf: i64,
    pub(crate) sub: String,
}

/// The service account and pod of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Reference>,
    pub(crate) serviceaccount: Reference,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Signer {
    /// A signer with a key of its own.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(crate) fn new() -> Result<Self, &'static str> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(|_| NO_RANDOM)?;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).map_err(|_| NO_RANDOM)?;
        Ok(Self { key, random })
    }

    /// A token that cannot be guessed.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub(crate) fn random_token(&self) -> Result<String, &'static str> {
        let random: [u8; 24] = ring::rand::generate(&self.random).map_err(|_| NO_RANDOM)?.expose();
        Ok(URL_SAFE_NO_PAD.encode(random))
    }

    /// The token with these claims; none if the system has no random numbers.
    pub(crate) fn sign(&self, claims: &Claims) -> Option<String> {
        let payload = serde_json::to_vec(claims).expect("claims always encode");
        let head = r#"{"alg":"ES256","kid":"informer"}"#;
        let text = format!("{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(payload));
        let signature = self.key.sign(&self.random, text.as_bytes()).ok()?;
        Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The claims of a token of this server, while it is not expired.
    pub(crate) fn check(&self, token: &str, now: i64) -> Option<Claims> {
        let (text, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.key.public_key());
        public.verify(text.as_bytes(), &signature).ok()?;
        let payload = URL_SAFE_NO_PAD.decode(text.split_once('.')?.1).ok()?;
        let claims: Claims = serde_json::from_slice(&payload).ok()?;
        (claims.nbf <= now && now < claims.exp).then_some(claims)
    }
}

impl Claims {
    /// The user the token stands for.
    pub(crate) fn user(&self) -> User {
        let account = &self.about.serviceaccount;
        let mut user = User::service_account(&self.about.namespace, &account.name).uid(&account.uid);
        let mut add = |name: &str, value: String| {
            user.extra.insert(format!("authentication.kubernetes.io/{name}"), vec![value]);
        };
        add("credential-id", format!("JTI={}", self.jti));
        if let Some(pod) = &self.about.pod {
            add("pod-name", pod.name.clone());
            add("pod-uid", pod.uid.clone());
        }
        user
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_from_its_issue_to_its_expiry_and_only_on_this_server() {
        let signer = Signer::new().unwrap();
        let account = Reference { name: "a".to_owned(), uid: "u".to_owned() };
        let claims = Claims {
            aud: vec![ISSUER.to_owned()],
            exp: 200,
            iat: 100,
            iss: ISSUER.to_owned(),
            jti: "j".to_owned(),
            about: About { namespace: "default".to_owned(), pod: None, serviceaccount: account },
            nbf: 100,
            sub: "system:serviceaccount:default:a".to_owned(),
        };
        let token = signer.sign(&claims).unwrap();
        assert_eq!(signer.check(&token, 100), Some(claims));
        assert_eq!((signer.check(&token, 99), signer.check(&token, 200)), (None, None));
        assert_eq!(Signer::new().unwrap().check(&token, 100), None);
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] ^= 1;
            let _never_panics = signer.check(&String::from_utf8_lossy(&changed), 100);
        }
    }
}
