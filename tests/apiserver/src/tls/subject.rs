//! A certificate under another subject: with as many organizations as the user has groups.
//!
//! Answers: how does a client certificate name more groups than the crate that makes it can write? That one (`rcgen`)
//! keeps a single value for each type of name; so the certificate is made without a subject, and gets one here.
//! 1. Only the subject changes; the key that signed the certificate signs it again.
//! 2. The common name comes first, then one organization for each group, in their order.
use rcgen::SigningKey;
use yasna::models::ObjectIdentifier;
use yasna::{ASN1Result, DERWriter};

use crate::access::user::User;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const COMMON_NAME: [u64; 4] = [2, 5, 4, 3];
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];
/// The index of the subject among the signed elements: after the version, the serial number, the algorithm,
/// the issuer and the validity.
const SUBJECT: usize = 5;

/// The certificate (in DER) that names this user, signed by `key`.
///
/// # Errors If the bytes are not a certificate, or the key cannot sign.
pub(super) fn renamed(certificate: &[u8], user: &User, key: &impl SigningKey) -> Result<Vec<u8>, Failure> {
    let [signed, algorithm, _] = parts(certificate)?
        .try_into()
        .map_err(|_| "a certificate is what is signed, an algorithm and a signature")?;
    let mut fields = parts(&signed)?;
    *fields.get_mut(SUBJECT).ok_or("a certificate has a subject")? = subject(user);
    let signed = sequence(&fields);
    let signature = key.sign(&signed)?;
    let signature = yasna::construct_der(|out| out.write_bitvec_bytes(&signature, signature.len() * 8));
    Ok(sequence(&[signed, algorithm, signature]))
}

fn subject(user: &User) -> Vec<u8> {
    let name = (COMMON_NAME, user.name.as_str());
    let groups = user.groups.iter().map(|group| (ORGANIZATION, group.as_str()));
    yasna::construct_der(|out| {
        out.write_sequence(|names| {
            for (kind, value) in std::iter::once(name).chain(groups) {
                names.next().write_set(|set| attribute(set.next(), &kind, value));
            }
        });
    })
}

fn attribute(out: DERWriter<'_>, kind: &[u64], value: &str) {
    out.write_sequence(|pair| {
        pair.next().write_oid(&ObjectIdentifier::from_slice(kind));
        pair.next().write_utf8_string(value);
    });
}

/// The elements of a sequence, each with its head.
fn parts(sequence: &[u8]) -> ASN1Result<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    yasna::parse_der(sequence, |reader| {
        reader.read_sequence_of(|part| {
            parts.push(part.read_der()?);
            Ok(())
        })
    })?;
    Ok(parts)
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    yasna::construct_der(|out| {
        out.write_sequence(|out| parts.iter().for_each(|part| out.next().write_der(part)));
    })
}
