//! The certificates that authorities sign: the server's and the administrator's; and, by one of its own, what
//! the server shows to those that it passes requests on to.

use std::net::IpAddr;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    SanType, SerialNumber,
};
use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

use crate::authority::{Authority, COMMON_NAME, FRONT_PROXY_NAME};
use crate::error::Error;
use crate::files::{self, Key};
use crate::names::ServingNames;
use crate::private_files::{self, Readers};

/// Two years: longer than a server runs, shorter than the 825 days that Apple's clients take.
const LIFE: SignedDuration = SignedDuration::from_hours(730 * 24);
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Clients whose clock is behind see a certificate that is valid already.
const BACKDATE: SignedDuration = SignedDuration::from_hours(1);

/// What the server is called where it passes requests on, as kubeadm has it.
pub const FRONT_PROXY_CLIENT: &str = "front-proxy-client";

/// Which certificate.
pub enum Leaf<'a> {
    Serving(&'a ServingNames),
    Admin,
    FrontProxy,
}

/// A certificate of the directory, looked at and not yet touched.
pub enum Found {
    /// It serves as it is.
    Good { cert: String },
    /// It is missing, or has to be renewed.
    Renew { reason: String },
}

impl Found {
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Good { .. })
    }
}

/// Finds and renews the certificates of a directory at one time.
pub struct Signer<'a> {
    pub dir: &'a Path,
    pub authority: &'a Authority,
    pub now: Timestamp,
}

impl Signer<'_> {
    /// Looks at the certificate that is there.
    pub fn find(&self, leaf: &Leaf<'_>, key: &Key) -> Result<Found, Error> {
        let path = self.dir.join(leaf.file());
        let renew = |reason: &str| Ok(Found::Renew { reason: reason.to_owned() });
        let Some(cert) = private_files::read_if_there(&path)? else {
            return renew("there was none");
        };
        if key.is_new {
            return renew("its key is new");
        }
        Ok(match self.reason_to_renew(leaf, &path, &cert, key)? {
            None => Found::Good { cert },
            Some(reason) => Found::Renew { reason },
        })
    }

    /// The certificate: the one that was found, or a new one in its place.
    pub fn settle(&self, leaf: &Leaf<'_>, key: &Key, found: Found) -> Result<String, Error> {
        let reason = match found {
            Found::Good { cert } => return Ok(cert),
            Found::Renew { reason } => reason,
        };
        let path = self.dir.join(leaf.file());
        let signed = leaf.sign(&key.pair, self.authority, self.now);
        let cert = signed.map_err(|reason| Error::unfit(&path, reason))?;
        private_files::write(&path, cert.as_bytes(), Readers::All)?;
        tracing::info!(file = %path.display(), reason, "made a certificate");
        Ok(cert)
    }

    fn reason_to_renew(
        &self,
        leaf: &Leaf<'_>,
        path: &Path,
        cert: &str,
        key: &Key,
    ) -> Result<Option<String>, Error> {
        let der = files::certificates(path, cert)?.swap_remove(0);
        let cert = files::parsed(path, &der)?;
        files::check_match(path, &cert, &key.pair, leaf.key_file())?;
        if !is_signed_by(&cert, path, &self.authority.der)? {
            return match cert.issuer().iter_common_name().next().and_then(|name| name.as_str().ok()) {
                Some(COMMON_NAME | FRONT_PROXY_NAME) => {
                    Ok(Some("another authority had signed it".to_owned()))
                }
                _ => Err(Error::unfit(
                    path,
                    "was not signed by ca.crt; a certificate of your own is given with --tls-cert-file",
                )),
            };
        }
        let (begins, expires) = files::validity(&cert);
        if self.now < begins || expires.duration_since(self.now) < RENEW_BEFORE {
            return Ok(Some(format!("it was valid from {begins} to {expires}")));
        }
        Ok(leaf.uncovered(&cert).map(|name| format!("it did not cover {name}")))
    }
}

impl Leaf<'_> {
    fn file(&self) -> &'static str {
        match self {
            Self::Serving(_) => "apiserver.crt",
            Self::Admin => "admin.crt",
            Self::FrontProxy => "client.crt",
        }
    }

    fn key_file(&self) -> &'static str {
        match self {
            Self::Serving(_) => "apiserver.key",
            Self::Admin => "admin.key",
            Self::FrontProxy => "client.key",
        }
    }

    /// A name that is asked for and not in the certificate.
    fn uncovered(&self, cert: &X509Certificate<'_>) -> Option<String> {
        let Self::Serving(names) = self else { return None };
        let covered = names_of(cert);
        let dns = names.dns.iter().find(|name| !covered.dns.contains(*name)).cloned();
        dns.or_else(|| names.ips.iter().find(|ip| !covered.ips.contains(*ip)).map(IpAddr::to_string))
    }

    /// A new certificate for this key.
    ///
    /// # Errors
    /// The reason.
    pub fn sign(&self, key: &KeyPair, authority: &Authority, now: Timestamp) -> Result<String, String> {
        let mut params = self.params().map_err(not_made)?;
        params.serial_number = Some(serial_number()?);
        set_validity(&mut params, now, (now + LIFE).min(authority.expires));
        Ok(params.signed_by(key, &authority.issuer).map_err(not_made)?.pem())
    }

    /// What the certificate says, number and time apart.
    fn params(&self) -> Result<CertificateParams, rcgen::Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        match self {
            Self::Serving(names) => {
                params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
                params.subject_alt_names = subject_alt_names(names)?;
            }
            Self::Admin => {
                params.distinguished_name.push(DnType::OrganizationName, "system:masters");
                params.distinguished_name.push(DnType::CommonName, "kubernetes-admin");
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            }
            Self::FrontProxy => {
                params.distinguished_name.push(DnType::CommonName, FRONT_PROXY_CLIENT);
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            }
        }
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        Ok(params)
    }
}

fn subject_alt_names(names: &ServingNames) -> Result<Vec<SanType>, rcgen::Error> {
    let dns = names.dns.iter().map(|name| Ok(SanType::DnsName(name.as_str().try_into()?)));
    let ips = names.ips.iter().map(|ip| Ok(SanType::IpAddress(*ip)));
    dns.chain(ips).collect()
}

/// The names that a certificate covers.
pub fn names_of(cert: &X509Certificate<'_>) -> ServingNames {
    let mut names = ServingNames::default();
    let extension = cert.subject_alternative_name().ok().flatten();
    for name in extension.iter().flat_map(|extension| &extension.value.general_names) {
        match name {
            GeneralName::DNSName(dns) => names.dns.push((*dns).to_owned()),
            GeneralName::IPAddress(bytes) => names.ips.extend(ip(bytes)),
            _ => {}
        }
    }
    names
}

/// The names by which clients ask for a certificate: the common name, where it is a DNS name, and those that
/// it covers. Nobody asks by an address; one that stands for a name would be taken for where clients connect
/// to.
///
/// Source: apiserver v0.36.3 `dynamiccertificates/named_certificates.go`, `getCertificateNames`.
pub fn asked_by(cert: &X509Certificate<'_>) -> Vec<String> {
    let common = cert.subject().iter_common_name().last();
    let common = common.and_then(|name| forebay_certificate_names::text(name.attr_value()).ok().flatten());
    let common = common.filter(|name| is_asked_by(name));
    common.into_iter().chain(names_of(cert).dns).collect()
}

/// A DNS name, with a wildcard for its first label or as a whole, and no address.
fn is_asked_by(name: &str) -> bool {
    const BYTES_MAX: usize = 253;
    let dns = name.strip_prefix("*.").unwrap_or(name);
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let edges = [bytes.first(), bytes.last()];
        edges.iter().all(|edge| edge.is_some_and(alphanumeric))
            && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
    };
    // With zeros in front a number is one all the same.
    let parts = || name.split('.');
    let is_address = parts().count() == 4
        && parts().all(|part| {
            part.bytes().all(|byte| byte.is_ascii_digit())
                && part.parse().is_ok_and(|number: u64| number < 256)
        });
    name == "*" || (!is_address && dns.len() <= BYTES_MAX && dns.split('.').all(is_label))
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    v4.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}

/// The authority's key made the certificate's signature.
pub fn is_signed_by(
    cert: &X509Certificate<'_>,
    path: &Path,
    authority: &CertificateDer<'_>,
) -> Result<bool, Error> {
    let authority = files::parsed(path, authority)?;
    let named = cert.issuer().as_raw() == authority.subject().as_raw();
    Ok(named && cert.verify_signature(Some(authority.public_key())).is_ok())
}

/// Sets the time of validity; returns its end.
pub fn set_validity(params: &mut CertificateParams, now: Timestamp, expires: Timestamp) -> Timestamp {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let since_epoch =
        |time: Timestamp| std::time::Duration::from_secs(time.as_second().try_into().unwrap_or(0));
    params.not_before = epoch + since_epoch(now - BACKDATE);
    params.not_after = epoch + since_epoch(expires);
    expires
}

/// 16 random bytes, positive: a renewed certificate has the key of the old one and must have another number.
///
/// # Errors
/// The reason.
pub fn serial_number() -> Result<SerialNumber, String> {
    let mut bytes = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| "the system gives no random numbers".to_owned())?;
    bytes[0] = bytes[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

/// In words.
pub fn not_made(cause: rcgen::Error) -> String {
    format!("no certificate could be made: {cause}")
}
