//! Private keys in the three forms of PEM that kubeconfigs have.
//!
//! Answers "how is the same key written in PKCS#8, PKCS#1 and SEC 1?" for an RSA key of the file `rsa.pem`, which
//! protects nothing, and for an EC key that is made for each run.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;

/// An RSA key in PKCS#8.
pub(crate) const RSA: &str = include_str!("rsa.pem");

/// What stands before the PKCS#1 form within a PKCS#8 key of 2,048 bits.
const BEFORE_PKCS_1: usize = 26;
/// Where a P-256 key of rcgen has its private number, and how long its public point is.
const PRIVATE: std::ops::Range<usize> = 36..68;
const PUBLIC: usize = 65;

/// The RSA key in PKCS#1, as `openssl genrsa -traditional` writes it.
pub(crate) fn rsa_in_pkcs_1() -> String {
    let lines = RSA.lines().filter(|line| !line.starts_with("-----"));
    let der = STANDARD.decode(lines.collect::<String>()).expect("the file is PEM");
    pem("RSA PRIVATE KEY", &der[BEFORE_PKCS_1..])
}

/// An EC key in SEC 1, as `openssl ecparam -genkey` writes it.
pub(crate) fn in_sec_1(key: &KeyPair) -> String {
    let der = key.serialize_der();
    let private = &der[PRIVATE];
    let public = &der[der.len() - PUBLIC..];
    // SEQUENCE { 1, OCTET STRING, [0] prime256v1, [1] BIT STRING }
    let sec_1 = [
        &[0x30, 0x77, 2, 1, 1, 4, 0x20],
        private,
        &[0xa0, 0x0a, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7, 0xa1, 0x44, 3, 0x42, 0],
        public,
    ];
    pem("EC PRIVATE KEY", &sec_1.concat())
}

fn pem(section: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned() + "\n");
    format!("-----BEGIN {section}-----\n{}-----END {section}-----\n", lines.collect::<String>())
}
