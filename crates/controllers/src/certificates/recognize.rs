//! Which requests for certificates are those of a kubelet, and what else a signer asks of one.
//!
//! In: a request, usages. Out: whether it is one, or why not, in upstream's words. Never: signs.
//!
//! Source: kubernetes v1.36.3 `pkg/apis/certificates/helpers.go`, `pkg/controller/certificates/signer`.

use std::collections::BTreeSet;

use forebay_pki::signing::CertificateRequest;

const NODES: &str = "system:nodes";
const NODE: &str = "system:node:";
const SIGNATURE: &str = "digital signature";
const ENCIPHERMENT: &str = "key encipherment";
const CLIENT: &str = "client auth";
const SERVER: &str = "server auth";

/// What a kubelet shows to API servers.
///
/// # Errors
/// Why it is not.
pub fn kubelet_client<'u>(
    request: &CertificateRequest,
    usages: impl Iterator<Item = &'u str>,
) -> Result<(), String> {
    if request.organizations != [NODES] {
        return Err("subject organization is not system:nodes".into());
    }
    for (names, what) in [
        (!request.dns_names.is_empty(), "DNS"),
        (!request.emails.is_empty(), "Email"),
        (!request.ips.is_empty(), "IP"),
        (!request.uris.is_empty(), "URI"),
    ] {
        if names {
            return Err(format!("{what} subjectAltNames are not allowed"));
        }
    }
    is_node(request)?;
    has_usages(usages, CLIENT)
}

/// What a kubelet shows to its clients.
///
/// # Errors
/// Why it is not.
pub fn kubelet_serving<'u>(
    request: &CertificateRequest,
    usages: impl Iterator<Item = &'u str>,
) -> Result<(), String> {
    if request.organizations != [NODES] {
        return Err("subject organization is not system:nodes".into());
    }
    if request.dns_names.is_empty() && request.ips.is_empty() {
        return Err("DNS or IP subjectAltName is required".into());
    }
    for (names, what) in [(!request.emails.is_empty(), "Email"), (!request.uris.is_empty(), "URI")] {
        if names {
            return Err(format!("{what} subjectAltNames are not allowed"));
        }
    }
    has_usages(usages, SERVER)?;
    is_node(request)
}

/// What any client shows.
///
/// # Errors
/// Why it is not.
pub fn client<'u>(usages: impl Iterator<Item = &'u str>) -> Result<(), String> {
    let mut is_client = false;
    for usage in usages {
        match usage {
            SIGNATURE | ENCIPHERMENT => {}
            CLIENT => is_client = true,
            other => return Err(format!("invalid usage for client certificate: {other}")),
        }
    }
    match is_client {
        true => Ok(()),
        false => Err(format!("missing required usage for client certificate: {CLIENT}")),
    }
}

fn is_node(request: &CertificateRequest) -> Result<(), String> {
    match request.common_name.starts_with(NODE) {
        true => Ok(()),
        false => Err(format!("subject common name does not begin with {NODE}")),
    }
}

/// Key encipherment is for keys of RSA.
fn has_usages<'u>(usages: impl Iterator<Item = &'u str>, role: &str) -> Result<(), String> {
    let mut usages: BTreeSet<&str> = usages.collect();
    usages.remove(ENCIPHERMENT);
    match usages == BTreeSet::from([SIGNATURE, role]) {
        true => Ok(()),
        false => {
            let mut wanted = [SIGNATURE, ENCIPHERMENT, role];
            wanted.sort_unstable();
            Err(format!("usages did not match [{}]", wanted.join(" ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> CertificateRequest {
        let mut request = CertificateRequest::default();
        request.common_name = "system:node:one".into();
        request.organizations = vec!["system:nodes".into()];
        request
    }

    /// A node's, otherwise.
    fn but(change: impl FnOnce(&mut CertificateRequest)) -> CertificateRequest {
        let mut request = node();
        change(&mut request);
        request
    }

    #[test]
    fn kubelets_are_told_from_others_in_upstreams_words() {
        let usages = [SIGNATURE, ENCIPHERMENT, CLIENT];
        let client = |request: &CertificateRequest, usages: &[&'static str]| {
            kubelet_client(request, usages.iter().copied()).err().unwrap_or_default()
        };
        assert_eq!(client(&node(), &usages), "");
        assert_eq!(client(&node(), &[SIGNATURE, CLIENT]), "");
        let wrong = "usages did not match [client auth digital signature key encipherment]";
        assert_eq!(client(&node(), &[SIGNATURE, CLIENT, SERVER]), wrong);
        assert_eq!(client(&node(), &[CLIENT]), wrong);
        let two = but(|request| request.organizations.push("b".into()));
        assert_eq!(client(&two, &usages), "subject organization is not system:nodes");
        let named = but(|request| request.dns_names.push("a".into()));
        assert_eq!(client(&named, &usages), "DNS subjectAltNames are not allowed");
        let other = but(|request| request.common_name = "node:one".into());
        assert_eq!(client(&other, &usages), "subject common name does not begin with system:node:");

        let serving = |request: &CertificateRequest| {
            kubelet_serving(request, [SIGNATURE, SERVER].into_iter()).err().unwrap_or_default()
        };
        assert_eq!(serving(&named), "");
        assert_eq!(serving(&node()), "DNS or IP subjectAltName is required");
        let mailed = but(|request| {
            request.dns_names.push("a".into());
            request.emails.push("a@b".into());
        });
        assert_eq!(serving(&mailed), "Email subjectAltNames are not allowed");
    }

    #[test]
    fn a_client_has_the_usage_of_clients_and_no_other_role() {
        assert_eq!(super::client([CLIENT, SIGNATURE].into_iter()), Ok(()));
        assert_eq!(
            super::client([CLIENT, SERVER].into_iter()),
            Err("invalid usage for client certificate: server auth".into())
        );
        assert_eq!(
            super::client([SIGNATURE].into_iter()),
            Err("missing required usage for client certificate: client auth".into())
        );
    }
}
