//! What is decided of proxies in front of this server, and of it as a proxy in front of other servers and of
//! kubelets.

use forebay_pki::CertificateFiles;

use super::reader::Reader;
use super::{FrontProxy, Kubelets};
use crate::error::Error;
use crate::flags::values;

const USERNAMES: &str = "requestheader-username-headers";
const UIDS: &str = "requestheader-uid-headers";
const GROUPS: &str = "requestheader-group-headers";
const EXTRA: &str = "requestheader-extra-headers-prefix";

/// # Errors
/// A name that no header has; half a pair of files.
pub(super) fn decide(read: &Reader) -> Result<FrontProxy, Error> {
    let client = match (read.path("proxy-client-cert-file"), read.path("proxy-client-key-file")) {
        (Some(cert), Some(key)) => Some(CertificateFiles { cert, key }),
        (None, None) => None,
        _ => {
            let why = "--proxy-client-cert-file and --proxy-client-key-file need each other";
            return Err(Error::Conflict(why.to_owned()));
        }
    };
    Ok(FrontProxy {
        client_ca_file: read.path("requestheader-client-ca-file"),
        allowed_names: read.list("requestheader-allowed-names"),
        username_headers: headers(read, USERNAMES)?,
        uid_headers: headers(read, UIDS)?,
        group_headers: headers(read, GROUPS)?,
        extra_prefixes: headers(read, EXTRA)?,
        client,
    })
}

/// # Errors
/// Half a pair of files; a port that is none.
pub(super) fn kubelets(read: &Reader) -> Result<Kubelets, Error> {
    let client = match (read.path("kubelet-client-certificate"), read.path("kubelet-client-key")) {
        (Some(cert), Some(key)) => Some(CertificateFiles { cert, key }),
        (None, None) => None,
        _ => {
            let why = "--kubelet-client-certificate and --kubelet-client-key need each other";
            return Err(Error::Conflict(why.to_owned()));
        }
    };
    let types = read.list("kubelet-preferred-address-types");
    Ok(Kubelets {
        client,
        authority: read.path("kubelet-certificate-authority"),
        address_types: types.iter().flat_map(|all| all.split(',')).map(str::to_owned).collect(),
        port: read.parsed("kubelet-port", |value| values::number(value, u32::from(u16::MAX)))? as u16,
    })
}

fn headers(read: &Reader, flag: &'static str) -> Result<Vec<String>, Error> {
    let names = read.list(flag);
    let is_name = |name: &String| {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !name.is_empty() && name.bytes().all(is_token)
    };
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(read.refuse(flag, format!("{name:?} is no name of a header"))),
        None => Ok(names),
    }
}
