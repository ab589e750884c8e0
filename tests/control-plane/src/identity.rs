//! Who the control plane is, and who may talk to it: its CA, its keys, the tokens and the client certificate.
//!
//! Question: which files does kube-apiserver need in order to authenticate itself and its users?
//! 1. One CA, made anew for each control plane, signs the server's certificate and the client's.
//! 2. All keys are EC P-256 in PKCS#8. Certificates do not expire.
//! 3. The files outlive a restart of the process, so the server comes back as itself.
//!
//! Effects: [`Identity::create`] writes the files of [`Files`] and nothing later changes them. Read next:
//! `kubeconfig.rs`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;

use crate::{StartError, ports::random};

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

/// Where the files that kube-apiserver reads are.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) ca: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) service_account_key: PathBuf,
    pub(crate) service_account_public: PathBuf,
    pub(crate) tokens: PathBuf,
}

/// Everything secret or signed of one control plane.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) ca: CertificateDer<'static>,
    pub(crate) ca_pem: String,
    pub(crate) admin_token: String,
    pub(crate) powerless_token: String,
    pub(crate) client: Option<ClientCertificate>,
    pub(crate) files: Files,
}

impl Identity {
    /// Makes keys, certificates and tokens, and writes what kube-apiserver reads into `directory`.
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
        Ok(Self { ca: authority.der, ca_pem: authority.pem, admin_token, powerless_token, client, files })
    }
}

/// The CA while it signs.
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
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = subject;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
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
