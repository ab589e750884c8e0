//! The identity of the control plane and of its users: its CA, its keys, the tokens and the client certificate.
//!
//! Question: which files does kube-apiserver need in order to authenticate itself and its users?
//! 1. One CA, created anew for each control plane, signs the server's certificate and the client's.
//! 2. All keys of its own are EC P-256 in PKCS#8. Certificates do not expire, except those that are issued to do so.
//! 3. The files outlast a restart of the process, so the server keeps its identity.
//!
//! Effects: [`Identity::create`] writes the files of [`Files`] and nothing later changes them. Read next:
//! `kubeconfig.rs`.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::CertificateDer;

use crate::{Error, StartError, ports::random};

/// The group that may do everything, in any Kubernetes.
const ADMIN_GROUP: &str = "system:masters";

/// A certificate and its key, both in PEM: the user `admin` of the group `system:masters`.
#[derive(Debug, Clone)]
pub struct ClientCertificate {
    certificate_pem: String,
    key_pem: String,
}

impl ClientCertificate {
    /// The certificate.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// Its private key, PKCS#8.
    #[must_use]
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }
}

/// What a kube-apiserver presents, of an authority of its own.
#[derive(Debug, Clone)]
pub struct ServingCertificate {
    authority_pem: String,
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

/// The paths of the files that kube-apiserver reads.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) ca: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) service_account_key: PathBuf,
    pub(crate) service_account_public: PathBuf,
    pub(crate) tokens: PathBuf,
}

/// All keys, certificates and tokens of one control plane.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) ca: CertificateDer<'static>,
    pub(crate) ca_pem: String,
    pub(crate) admin_token: String,
    pub(crate) powerless_token: String,
    pub(crate) client: Option<ClientCertificate>,
    pub(crate) files: Files,
    authority: Authority,
}

impl Identity {
    /// Creates keys, certificates and tokens, and writes what kube-apiserver reads into `directory`.
    pub(crate) fn create(directory: &Path, with_client: bool) -> Result<Self, StartError> {
        let authority = Authority::create().map_err(StartError::Certificates)?;
        let (certificate, key) = authority.server().map_err(StartError::Certificates)?;
        let client = with_client.then(|| authority.client()).transpose().map_err(StartError::Certificates)?;
        let service_account = KeyPair::generate().map_err(StartError::Certificates)?;
        let (admin_token, powerless_token) = (token(), token());
        let write = |name: &str, content: &str| -> Result<PathBuf, StartError> {
            let path = directory.join(name);
            fs::write(&path, content).map_err(StartError::Directory)?;
            Ok(path)
        };
        let files = Files {
            ca: write("ca.crt", &authority.pem)?,
            certificate: write("apiserver.crt", &certificate)?,
            key: write("apiserver.key", &key)?,
            service_account_key: write("sa.key", &service_account.serialize_pem())?,
            service_account_public: write("sa.pub", &service_account.public_key_pem())?,
            tokens: write(
                "tokens.csv",
                &format!("{admin_token},admin,1,\"{ADMIN_GROUP}\"\n{powerless_token},powerless,2\n"),
            )?,
        };
        let (ca, ca_pem) = (authority.der.clone(), authority.pem.clone());
        Ok(Self { ca, ca_pem, admin_token, powerless_token, client, files, authority })
    }

    /// A certificate for the key in this PEM, which ends after `life` or never.
    pub(crate) fn issue(
        &self,
        (user, group): (&str, &str),
        key_pem: &str,
        life: Option<Duration>,
    ) -> Result<String, rcgen::Error> {
        let usage = ExtendedKeyUsagePurpose::ClientAuth;
        let mut params = params(Vec::new(), name(user, Some(group)), usage)?;
        if let Some(life) = life {
            params.not_after = date_time_ymd(1970, 1, 1) + since_1970() + life;
        }
        Ok(params.signed_by(&KeyPair::from_pem(key_pem)?, &self.authority.issuer)?.pem())
    }
}

impl ServingCertificate {
    /// Makes an authority and lets it sign.
    ///
    /// # Errors
    /// [`Error::Certificate`] when no key can be made.
    pub fn of_new_authority() -> Result<Self, Error> {
        let authority = Authority::create().map_err(Error::Certificate)?;
        let (certificate_pem, key_pem) = authority.server().map_err(Error::Certificate)?;
        Ok(Self { authority_pem: authority.pem, certificate_pem, key_pem })
    }

    /// The authority that a client must trust, in PEM.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server compares the end of a certificate with the time of day"
)]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// The CA.
#[derive(Debug)]
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
    pem: String,
}

impl Authority {
    fn create() -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = name("actix-informer test CA", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Self { der: certificate.der().clone(), pem: certificate.pem(), issuer: Issuer::new(params, key) })
    }

    fn server(&self) -> Result<(String, String), rcgen::Error> {
        let names = ["127.0.0.1", "10.0.0.1", "localhost", "kubernetes.default", "kubernetes.default.svc"];
        let names = names.map(str::to_owned).to_vec();
        self.sign(names, name("kube-apiserver", None), ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn client(&self) -> Result<ClientCertificate, rcgen::Error> {
        let subject = name("admin", Some(ADMIN_GROUP));
        let (certificate_pem, key_pem) =
            self.sign(Vec::new(), subject, ExtendedKeyUsagePurpose::ClientAuth)?;
        Ok(ClientCertificate { certificate_pem, key_pem })
    }

    fn sign(
        &self,
        names: Vec<String>,
        subject: DistinguishedName,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<(String, String), rcgen::Error> {
        let key = KeyPair::generate()?;
        let certificate = params(names, subject, usage)?.signed_by(&key, &self.issuer)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}

fn params(
    names: Vec<String>,
    subject: DistinguishedName,
    usage: ExtendedKeyUsagePurpose,
) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = subject;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn name(common: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

fn token() -> String {
    format!("{:016x}{:016x}", random(), random())
}
