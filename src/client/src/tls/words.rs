//! Explains a failed TLS handshake: the certificate, the cause and the remedy. No text contains ASN.1 identifiers, raw bytes, or
//! more than a line from the server.

use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, OtherError};

use super::authorities::Authorities;
use super::certificate::Certificate;

const NAMED: usize = 3;

#[derive(Debug, Clone, thiserror::Error)]
#[error("the certificate of the server ({certificate}) {cause}")]
struct NotTrusted {
    certificate: String,
    cause: String,
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{words} ({detail})")]
struct NoAgreement {
    words: &'static str,
    detail: String,
    may_be_certificate: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the peer does not speak TLS on this port; does its URL have to begin with http://?")]
struct NotTls(#[source] io::Error);

pub(super) fn of_refusal(error: Error, presented: &CertificateDer<'_>, trusted: &Authorities) -> Error {
    let Error::InvalidCertificate(cause) = error else { return error };
    let read = Certificate::read(presented);
    let certificate = match &read {
        None => "which cannot be read".to_owned(),
        Some(read) if read.is_self_issued() => format!("`{}`, self-signed", read.subject()),
        Some(read) => format!("`{}`, issued by `{}`", read.subject(), read.issuer()),
    };
    let cause = cause_of(&cause, read.as_ref(), trusted);
    CertificateError::Other(OtherError(Arc::new(NotTrusted { certificate, cause }))).into()
}

pub(crate) fn of_handshake(error: io::Error) -> io::Error {
    let kind = error.kind();
    let found = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    let words = match found {
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            return io::Error::new(kind, NotTls(error));
        }
        Some(Error::InvalidCertificate(CertificateError::Other(other))) => {
            return match other.0.downcast_ref::<NotTrusted>() {
                Some(known) => io::Error::new(kind, known.clone()),
                None => error,
            };
        }
        Some(Error::AlertReceived(alert)) => {
            // Before TLS 1.3, this general alert also stands for a missing client certificate.
            let is_general = *alert == AlertDescription::HandshakeFailure;
            let may_be_certificate = is_general || is_of_certificate(*alert);
            NoAgreement {
                words: of_alert(*alert),
                detail: format!("TLS alert {alert:?}"),
                may_be_certificate,
            }
        }
        Some(Error::PeerIncompatible(why)) => NoAgreement {
            words: "the server and this client have no version, cipher suite or signature of TLS in common; this client \
                    speaks TLS 1.2 and 1.3",
            detail: format!("{why:?}"),
            may_be_certificate: false,
        },
        _ => return error,
    };
    io::Error::new(kind, words)
}

/// For another that waits for the same connection; [`is_about_certificates`] stays true.
#[cfg(feature = "http2")]
pub(crate) fn copied(error: &io::Error) -> io::Error {
    let (kind, cause) = (error.kind(), error.get_ref());
    if let Some(cause) = cause.and_then(|cause| cause.downcast_ref::<NotTrusted>()) {
        return io::Error::new(kind, cause.clone());
    }
    if let Some(cause) = cause.and_then(|cause| cause.downcast_ref::<NoAgreement>()) {
        return io::Error::new(kind, cause.clone());
    }
    match cause.and_then(|cause| cause.downcast_ref::<Error>()) {
        Some(cause) => io::Error::new(kind, cause.clone()),
        None => io::Error::new(kind, error.to_string()),
    }
}

/// Whether either side refused a certificate. The general alert counts only after [`of_handshake`].
pub(crate) fn is_about_certificates(error: &io::Error) -> bool {
    let Some(cause) = error.get_ref() else { return false };
    match cause.downcast_ref::<Error>() {
        Some(Error::AlertReceived(alert)) => is_of_certificate(*alert),
        Some(error) => matches!(error, Error::InvalidCertificate(_)),
        None => {
            cause.is::<NotTrusted>()
                || cause.downcast_ref::<NoAgreement>().is_some_and(|words| words.may_be_certificate)
        }
    }
}

/// Whether the server refuses or requests a client certificate.
fn is_of_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRequired
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::DecryptError
    )
}

fn cause_of(cause: &CertificateError, read: Option<&Certificate<'_>>, trusted: &Authorities) -> String {
    match cause {
        CertificateError::UnknownIssuer => of_unknown_issuer(read, trusted),
        CertificateError::BadSignature => {
            "is not signed by the authority whose name it has: was the authority made anew? Configure its new \
             certificate. (An RSA key with less than 2048 bits is not accepted either.)"
                .to_owned()
        }
        CertificateError::ExpiredContext { time, not_after } => {
            let whose = match read {
                Some(read) if read.ends() != *not_after => "has an issuer whose certificate",
                _ => "has",
            };
            let (end, now) = (date(*not_after), date(*time));
            format!("{whose} ended on {end}, and it is {now} here: renew it, or set the clock of this machine")
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let whose = match read {
                Some(read) if read.begins() != *not_before => "has an issuer whose certificate ",
                _ => "",
            };
            let (begin, now) = (date(*not_before), date(*time));
            format!("{whose}begins to be valid on {begin}, and it is {now} here: set the clock of this machine or the server")
        }
        CertificateError::NotValidForNameContext { expected, presented } => of_wrong_name(&expected.to_str(), presented),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "or that of its issuer may not be used by a server, by its extended key usage: use one for server \
             authentication"
                .to_owned()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => of_algorithm(read),
        CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "or that of its issuer is signed in a way that does not go with the key of its issuer: configure the \
             authority that has signed it"
                .to_owned()
        }
        CertificateError::UnhandledCriticalExtension => {
            "has a critical extension that is not known here: issue it without that".to_owned()
        }
        CertificateError::BadEncoding => "is not written as X.509 wants it: issue it anew".to_owned(),
        CertificateError::Other(other) => format!("breaks a rule of X.509 ({other}): issue it anew"),
        other => format!("is not accepted ({other:?})"),
    }
}

fn of_unknown_issuer(read: Option<&Certificate<'_>>, trusted: &Authorities) -> String {
    let mut names: Vec<_> = trusted
        .certificates
        .iter()
        .filter_map(|one| Certificate::read(&one.der))
        .take(NAMED)
        .map(|one| format!("`{}`", one.subject()))
        .collect();
    let more = trusted.certificates.len() - names.len().min(trusted.certificates.len());
    if more > 0 {
        names.push(format!("{more} more"));
    }
    if names.is_empty() {
        return "is trusted by nobody: the configured certificate authority is empty".to_owned();
    }
    let names = names.join(", ");
    match read.is_some_and(Certificate::is_self_issued) {
        true => format!("is not among the trusted ones ({names}): configure it as the certificate authority"),
        false => format!(
            "comes from nobody who is trusted ({names}): is the configured certificate authority the one of this cluster?"
        ),
    }
}

fn of_wrong_name(expected: &str, presented: &[String]) -> String {
    if presented.is_empty() {
        return format!(
            "names no host, and so not {expected}: issue it with a subject alternative name (a common name does not count)"
        );
    }
    // rustls writes `DnsName("a")` and `IpAddress(127.0.0.1)`.
    let bare = |name: &String| {
        let inner = name.split_once('(').map_or(name.as_str(), |(_, inner)| inner.trim_end_matches(')'));
        inner.trim_matches('"').to_owned()
    };
    let mut names: Vec<_> = presented.iter().take(NAMED * NAMED).map(bare).collect();
    if presented.len() > names.len() {
        names.push(format!("{} more", presented.len() - names.len()));
    }
    format!(
        "is for {}, and not for {expected}: connect by one of these names, or set it as the name of the server \
         (`tls-server-name`)",
        names.join(", ")
    )
}

fn of_algorithm(read: Option<&Certificate<'_>>) -> String {
    let name = match read.map(Certificate::signature).as_deref() {
        Some("1.2.840.113549.1.1.5" | "1.2.840.10045.4.1" | "1.2.840.10040.4.3" | "1.3.14.3.2.29") => "SHA-1",
        Some("1.2.840.113549.1.1.4" | "1.2.840.113549.1.1.2") => "MD5",
        Some("1.2.840.113549.1.1.10") => "RSA-PSS",
        _ => "an algorithm that is not accepted here",
    };
    format!("or that of its issuer is signed with {name}, which is not accepted: issue it anew, with SHA-256")
}

fn of_alert(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity => {
            "the server ended the handshake: it has no cipher suite or signature in common with this client, or asks for \
             a client certificate"
        }
        AlertDescription::ProtocolVersion => {
            "the server ended the handshake: it speaks neither TLS 1.2 nor TLS 1.3"
        }
        AlertDescription::CertificateRequired => {
            "the server asks for a client certificate, and none is configured"
        }
        AlertDescription::UnknownCA => {
            "the server does not accept the client certificate: it does not trust who issued it"
        }
        AlertDescription::CertificateExpired => {
            "the server does not accept the client certificate: it has expired"
        }
        AlertDescription::CertificateRevoked => {
            "the server does not accept the client certificate: it is revoked"
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::AccessDenied
        | AlertDescription::DecryptError => "the server does not accept the client certificate",
        AlertDescription::UnrecognisedName => {
            "the server has no certificate for this name: set the name of the server (`tls-server-name`)"
        }
        _ => "the server ended the handshake",
    }
}

fn date(time: UnixTime) -> String {
    let second = i64::try_from(time.as_secs()).ok().and_then(|second| Timestamp::from_second(second).ok());
    second.map_or_else(|| "a day that no calendar has".to_owned(), |time| time.to_string())
}
