//! The certificate authority: made once, loaded ever after.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::CertificateDer;

use crate::error::Error;
use crate::private_files::{self, Readers};
use crate::{files, leaf};

/// The names of authorities made here, of certificates and of proxies'. They tell certificates made here from
/// those that somebody put here.
pub const COMMON_NAME: &str = "forebay-ca";
pub const FRONT_PROXY_NAME: &str = "forebay-front-proxy-ca";

/// Ten years, as kubeadm's.
const LIFE: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
/// Replacing an authority is work for people: they get a quarter of a year.
const WARN_BEFORE: SignedDuration = SignedDuration::from_hours(90 * 24);

/// Signs certificates.
pub struct Authority {
    pub cert: String,
    pub der: CertificateDer<'static>,
    pub issuer: Issuer<'static, KeyPair>,
    pub expires: Timestamp,
}

impl Authority {
    /// Makes an authority with this key.
    ///
    /// # Errors
    /// The reason.
    pub fn new(name: &str, key: KeyPair, now: Timestamp) -> Result<Self, String> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.serial_number = Some(leaf::serial_number()?);
        let expires = leaf::set_validity(&mut params, now, now + LIFE);
        let cert = params.self_signed(&key).map_err(leaf::not_made)?;
        Ok(Self { cert: cert.pem(), der: cert.der().clone(), issuer: Issuer::new(params, key), expires })
    }

    /// Makes an authority with this key and writes its certificate.
    pub fn make(path: &Path, name: &str, key: KeyPair, now: Timestamp) -> Result<Self, Error> {
        let made = Self::new(name, key, now).map_err(|reason| Error::unfit(path, reason))?;
        private_files::write(path, made.cert.as_bytes(), Readers::All)?;
        tracing::info!(file = %path.display(), "made a certificate authority");
        Ok(made)
    }

    /// Takes the authority that is there.
    pub fn load(
        path: &Path,
        cert: String,
        key: KeyPair,
        now: Timestamp,
        warnings: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let der = files::certificates(path, &cert)?.swap_remove(0);
        let expires = check(path, &der, &key, now)?;
        if expires.duration_since(now) < WARN_BEFORE {
            let file = path.display();
            warnings.push(format!(
                "certificate authority {file} expires at {expires}; it is not renewed by itself"
            ));
        }
        let issuer = Issuer::from_ca_cert_der(&der, key)
            .map_err(|cause| Error::unfit(path, format!("cannot be used as an authority: {cause}")))?;
        Ok(Self { cert, der, issuer, expires })
    }
}

fn check(path: &Path, der: &CertificateDer<'_>, key: &KeyPair, now: Timestamp) -> Result<Timestamp, Error> {
    let cert = files::parsed(path, der)?;
    files::check_match(path, &cert, key, "ca.key")?;
    if !cert.is_ca() {
        return Err(Error::unfit(path, "is not the certificate of an authority"));
    }
    let (begins, expires) = files::validity(&cert);
    if now < begins {
        return Err(Error::unfit(path, format!("is valid only from {begins}; is the clock right?")));
    }
    if now >= expires {
        return Err(Error::unfit(
            path,
            format!("expired at {expires}; remove the directory to begin with a new authority"),
        ));
    }
    Ok(expires)
}
