//! Certificates and keys: what kube-apiserver is started with, and the TLS settings of a client.
//!
//! In: a directory to write to, or PEM text. Out: files, or a rustls [`ClientConfig`].
//! Never: a certificate that outlives the directory it was made for.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::client::Resumption;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, SupportedCipherSuite, WantsVerifier};

use crate::Error;

/// The one that clients ask for: every server encrypts alike.
const CIPHER: SupportedCipherSuite = TLS13_AES_128_GCM_SHA256;

/// Who shows `user.crt`.
pub const USER: &str = "bench-user";

/// Writes `ca.crt`, `server.crt` and `.key` (127.0.0.1), `client.crt` and `.key` (system:masters), `user.crt`
/// and `.key` ([`USER`], of no group), `sa.key` and `.pub`.
pub fn write(dir: &Path) -> Result<(), Error> {
    let ca_key = key()?;
    let mut ca = params("bench-ca", None);
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    save(dir, "ca.crt", &ca.self_signed(&ca_key).map_err(pki)?.pem())?;
    let issuer = Issuer::new(ca, ca_key);

    let mut server = params("kube-apiserver", None);
    server.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    issue(dir, "server", server, &issuer)?;

    let mut client = params("bench", Some("system:masters"));
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    issue(dir, "client", client, &issuer)?;

    let mut user = params(USER, None);
    user.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    issue(dir, "user", user, &issuer)?;

    let tokens = key()?;
    save(dir, "sa.key", &tokens.serialize_pem())?;
    save(dir, "sa.pub", &tokens.public_key_pem())
}

/// What [`write`] wrote into `dir` for a client.
pub fn credentials(dir: &Path) -> Result<Arc<ClientConfig>, Error> {
    client_config(&read(dir, "ca.crt")?, &read(dir, "client.crt")?, &read(dir, "client.key")?)
}

/// The same for [`USER`], of a server whose authority is `ca`, or the one that [`write`] made.
pub fn user(dir: &Path, ca: Option<Vec<u8>>) -> Result<Arc<ClientConfig>, Error> {
    let ca = ca.map_or_else(|| read(dir, "ca.crt"), Ok)?;
    client_config(&ca, &read(dir, "user.crt")?, &read(dir, "user.key")?)
}

fn read(dir: &Path, name: &str) -> Result<Vec<u8>, Error> {
    let path = dir.join(name);
    fs::read(&path).map_err(Error::file("cannot read", &path))
}

/// TLS settings of a client that has no certificate, to servers of which [`write`] wrote the authority into
/// `dir`. No session is taken up again: each client is a process of its own.
pub fn anonymous(dir: &Path) -> Result<Arc<ClientConfig>, Error> {
    let path = dir.join("ca.crt");
    let roots = roots(&fs::read(&path).map_err(Error::file("cannot read", &path))?)?;
    let mut config = builder()?.with_root_certificates(roots).with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// TLS settings of a client that trusts `ca` and shows `certificate`; all PEM.
pub fn client_config(ca: &[u8], certificate: &[u8], key: &[u8]) -> Result<Arc<ClientConfig>, Error> {
    let key = PrivateKeyDer::from_pem_slice(key).map_err(pki)?;
    let config = builder()?
        .with_root_certificates(roots(ca)?)
        .with_client_auth_cert(chain(certificate)?, key)
        .map_err(pki)?;
    Ok(Arc::new(config))
}

fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Error> {
    let provider = CryptoProvider { cipher_suites: vec![CIPHER], ..ring::default_provider() };
    ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(pki)
}

fn roots(ca: &[u8]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for root in chain(ca)? {
        roots.add(root).map_err(pki)?;
    }
    Ok(roots)
}

fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(pki)
}

fn params(name: &str, group: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params
}

fn issue(
    dir: &Path,
    name: &str,
    params: CertificateParams,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<(), Error> {
    let key = key()?;
    save(dir, &format!("{name}.crt"), &params.signed_by(&key, issuer).map_err(pki)?.pem())?;
    save(dir, &format!("{name}.key"), &key.serialize_pem())
}

fn key() -> Result<KeyPair, Error> {
    KeyPair::generate().map_err(pki)
}

fn save(dir: &Path, name: &str, pem: &str) -> Result<(), Error> {
    let path = dir.join(name);
    fs::write(&path, pem).map_err(Error::file("cannot write", &path))
}

fn pki(why: impl std::fmt::Display) -> Error {
    Error::Pki(why.to_string())
}
