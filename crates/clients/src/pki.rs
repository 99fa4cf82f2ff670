//! Certificates for the rival, which makes none for its clients.
//!
//! In: a directory. Out: key files for kube-apiserver and a kubeconfig of an administrator.
//! Never: a certificate that outlives the directory.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

/// Writes `ca.crt`, `server.crt` and `.key`, `sa.key` and `.pub`, and `admin.kubeconfig` for `port`.
pub fn write(dir: &Path, port: u16) -> Result<(), String> {
    let ca_key = key()?;
    let mut ca = params("clients-ca");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority = ca.self_signed(&ca_key).map_err(shown)?.pem();
    let issuer = Issuer::new(ca, ca_key);

    let mut server = params("kube-apiserver");
    server.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let server_key = key()?;

    let mut admin = params("admin");
    admin.distinguished_name.push(DnType::OrganizationName, "system:masters");
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let admin_key = key()?;

    let tokens = key()?;
    let kubeconfig = kubeconfig(
        port,
        &authority,
        &admin.signed_by(&admin_key, &issuer).map_err(shown)?.pem(),
        &admin_key.serialize_pem(),
    );
    for (name, text) in [
        ("ca.crt", authority),
        ("server.crt", server.signed_by(&server_key, &issuer).map_err(shown)?.pem()),
        ("server.key", server_key.serialize_pem()),
        ("sa.key", tokens.serialize_pem()),
        ("sa.pub", tokens.public_key_pem()),
        ("admin.kubeconfig", kubeconfig),
    ] {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(())
}

/// Writes `tls.crt` and `tls.key` of a server on `localhost` that vouches for itself, and returns the former.
///
/// # Errors
/// They cannot be made or written.
pub fn write_webhook(dir: &Path) -> Result<String, String> {
    let mut own = CertificateParams::new(vec!["localhost".to_owned()]).map_err(shown)?;
    own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let own_key = key()?;
    let certificate = own.self_signed(&own_key).map_err(shown)?.pem();
    for (name, text) in [("tls.crt", &certificate), ("tls.key", &own_key.serialize_pem())] {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(certificate)
}

/// Writes `front-proxy-ca.crt`, `front-proxy-client.crt` and `.key`: who a kube-apiserver is to the servers
/// behind its APIServices.
pub fn write_front_proxy(dir: &Path) -> Result<(), String> {
    let ca_key = key()?;
    let mut ca = params("front-proxy-ca");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority = ca.self_signed(&ca_key).map_err(shown)?.pem();
    let issuer = Issuer::new(ca, ca_key);
    let mut client = params("front-proxy-client");
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let client_key = key()?;
    for (name, text) in [
        ("front-proxy-ca.crt", authority),
        ("front-proxy-client.crt", client.signed_by(&client_key, &issuer).map_err(shown)?.pem()),
        ("front-proxy-client.key", client_key.serialize_pem()),
    ] {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(())
}

/// Writes `ca.crt`, `etcd.crt` and `.key`, `client.crt` and `.key` for an etcd that lets in who shows a
/// certificate.
pub fn write_etcd(dir: &Path) -> Result<(), String> {
    let ca_key = key()?;
    let mut ca = params("etcd-ca");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority = ca.self_signed(&ca_key).map_err(shown)?.pem();
    let issuer = Issuer::new(ca, ca_key);
    let mut files = vec![("ca.crt", authority)];
    for (name, usage, crt, file) in [
        ("etcd", ExtendedKeyUsagePurpose::ServerAuth, "etcd.crt", "etcd.key"),
        ("client", ExtendedKeyUsagePurpose::ClientAuth, "client.crt", "client.key"),
    ] {
        let mut params = params(name);
        params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
        params.extended_key_usages = vec![usage];
        let key = key()?;
        files.push((crt, params.signed_by(&key, &issuer).map_err(shown)?.pem()));
        files.push((file, key.serialize_pem()));
    }
    for (name, text) in files {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(())
}

fn kubeconfig(port: u16, authority: &str, certificate: &str, key: &str) -> String {
    let data = |pem: &str| STANDARD.encode(pem);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority-data: {}
    server: \"https://127.0.0.1:{port}\"
  name: rival
users:
- name: admin
  user:
    client-certificate-data: {}
    client-key-data: {}
contexts:
- context:
    cluster: rival
    user: admin
  name: rival
current-context: rival
",
        data(authority),
        data(certificate),
        data(key)
    )
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn key() -> Result<KeyPair, String> {
    KeyPair::generate().map_err(shown)
}

fn shown(why: impl std::fmt::Display) -> String {
    format!("cannot make a certificate: {why}")
}
