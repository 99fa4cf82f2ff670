//! The certificates of a proxy.
//!
//! In: its name. Out: TLS settings, and whom clients trust. Never: a certificate that outlives the process.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;

use crate::Error;

pub struct Certificates {
    pub server: Arc<ServerConfig>,
    /// In PEM.
    pub authority: String,
}

/// Makes an authority and a certificate for `name` and 127.0.0.1; HTTP/2 is offered before HTTP/1.1.
pub fn make(name: &str) -> Result<Certificates, Error> {
    let ca_key = key()?;
    let mut ca = params("faults-ca");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority = ca.self_signed(&ca_key).map_err(failed)?.pem();
    let issuer = Issuer::new(ca, ca_key);

    let mut server = params(name);
    server.subject_alt_names = vec![
        SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        SanType::DnsName(name.try_into().map_err(failed)?),
    ];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let server_key = key()?;
    let certificate = server.signed_by(&server_key, &issuer).map_err(failed)?;
    let private = PrivateKeyDer::try_from(server_key.serialize_der()).map_err(failed)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .map_err(failed)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Certificates { server: Arc::new(config), authority })
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn key() -> Result<KeyPair, Error> {
    KeyPair::generate().map_err(failed)
}

fn failed(why: impl std::fmt::Display) -> Error {
    Error::Config(format!("no certificate: {why}"))
}
