//! The trusted certificates.
//!
//! An unreadable certificate is skipped with a warning. If none is readable, that is an error; an empty text trusts nobody. Each
//! is also trusted as a server's own; `chain.rs` says which may issue others.

use std::sync::LazyLock;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};

use super::certificate::Certificate;
use crate::error::Error;
use crate::warning::OnceInAWhile;

/// Each client reads its files again each minute: warnings must not repeat.
static TOLD: LazyLock<OnceInAWhile> = LazyLock::new(OnceInAWhile::default);

const WHAT: &str = "the certificate authority";

#[derive(Debug, Default)]
pub(super) struct Authorities {
    pub(super) certificates: Vec<Trusted>,
}

#[derive(Debug)]
pub(super) struct Trusted {
    pub(super) der: CertificateDer<'static>,
    /// As [`Certificate::name`]; `None` if it may not issue.
    pub(super) name: Option<Box<[u8]>>,
}

impl Trusted {
    /// For rustls' verifier.
    pub(super) fn alone(&self) -> Option<RootCertStore> {
        let mut store = RootCertStore::empty();
        store.add(self.der.clone()).ok()?;
        Some(store)
    }
}

impl Authorities {
    pub(super) fn of_pem(pem: &[u8]) -> Result<Self, Error> {
        let mut authorities = Self::default();
        let mut refused = None;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let added = certificate
                .map_err(|error| pem_reason(&error))
                .and_then(|certificate| authorities.add(certificate));
            if let Err(reason) = added {
                if TOLD.is_new(reason) {
                    tracing::warn!(
                        target: "actix_informer::client",
                        reason,
                        "a certificate of the certificate authority cannot be used and is left out"
                    );
                }
                refused = Some(reason);
            }
        }
        if authorities.certificates.is_empty() && !pem.is_empty() {
            let nothing = "it has no certificate in PEM (`-----BEGIN CERTIFICATE-----`)";
            let reason = refused.unwrap_or(nothing).to_owned();
            return Err(Error::Unusable { what: WHAT, reason });
        }
        Ok(authorities)
    }

    pub(super) fn of_system() -> Result<Self, Error> {
        let mut authorities = Self::of_pem(b"")?;
        let errors = authorities.add_those_of_the_system();
        if authorities.certificates.is_empty() {
            let reason = match errors.first() {
                Some(error) => format!("the system's certificates cannot be read: {error}"),
                None => "none is configured, and the system has none".to_owned(),
            };
            return Err(Error::Unusable { what: WHAT, reason });
        }
        Ok(authorities)
    }

    pub(super) fn add_those_of_the_system(&mut self) -> Vec<rustls_native_certs::Error> {
        let found = rustls_native_certs::load_native_certs();
        for certificate in found.certs {
            // Nobody can act on unusable system certificates here.
            let _ = self.add(certificate);
        }
        found.errors
    }

    fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), &'static str> {
        let not_read = "it is not an X.509 certificate in DER, as RFC 5280 has it";
        let read = Certificate::read(&certificate).ok_or(not_read)?;
        let name = Some(&read).filter(|read| read.may_sign()).and_then(Certificate::name);
        let trusted = Trusted { der: certificate, name };
        trusted.alone().ok_or(not_read)?;
        self.certificates.push(trusted);
        Ok(())
    }
}

/// The parser's own message quotes lines, which may belong to a key.
pub(super) fn pem_reason(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a section of its PEM has no end",
        pem::Error::IllegalSectionStart { .. } => "a section of its PEM begins with a broken line",
        pem::Error::Base64Decode(_) => "a section of its PEM is not base64",
        _ => "it is not PEM",
    }
}
