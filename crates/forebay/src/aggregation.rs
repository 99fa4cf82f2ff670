//! What the aggregator and its clients are told: the decided configuration and the prepared files in their
//! words.
//!
//! [`Prepared`] in; configurations, headers and what is published out. Never: decides anything.

use std::sync::Arc;

use forebay_aggregator::{AggregatorConfig, PublishedAuthentication};
use forebay_apimachinery::Status;
use forebay_documents::discovery::Extensions;
use forebay_kubelet::{KubeletConfig, KubeletCredentials};
use forebay_pki::front_proxy::FRONT_PROXY_CLIENT;
use forebay_pki::trust;
use forebay_proxy::{ClientIdentity, RemoteHeaders};
use forebay_registry::{KindServed, Registry};

use crate::error::Error;
use crate::prepare::{self, Prepared};

/// By which headers a proxy in front of this server says whom a request is from.
pub fn remote_headers(prepared: &Prepared) -> RemoteHeaders {
    let decided = &prepared.config.front_proxy;
    // They were read as names of headers.
    let names = |names: &[String]| names.iter().filter_map(|name| name.parse().ok()).collect();
    RemoteHeaders {
        usernames: names(&decided.username_headers),
        uids: names(&decided.uid_headers),
        groups: names(&decided.group_headers),
        extra_prefixes: decided.extra_prefixes.iter().map(|prefix| prefix.to_ascii_lowercase()).collect(),
    }
}

/// What aggregated servers serve of a kind, for those who judge owners.
pub fn kinds(extensions: Arc<Extensions>) -> impl Fn(&str, &str) -> Option<KindServed> {
    move |api_version, kind| {
        let known = extensions.resource_of(api_version, kind)?;
        Some(KindServed { resource: known.resource.into(), namespaced: &*known.scope == "Namespaced" })
    }
}

/// Who this server is to others.
///
/// # Errors
/// What is to be shown to them cannot be read.
pub fn shown(prepared: &Prepared) -> Result<ClientIdentity, Error> {
    let shown = &prepared.front_proxy.client;
    ClientIdentity::from_pem(&shown.cert, &shown.key).map_err(Error::Serve)
}

/// Who this server is to others, and how it finds them.
pub fn config(prepared: &Prepared, identity: ClientIdentity) -> AggregatorConfig {
    AggregatorConfig { identity: Some(identity), spoken: remote_headers(prepared).spoken() }
}

/// How kubelets are asked, if they are.
///
/// # Errors
/// What is to be shown to them cannot be read.
pub fn kubelets(prepared: &Prepared) -> Result<Option<KubeletConfig>, Error> {
    let Some(files) = &prepared.kubelets else { return Ok(None) };
    let decided = &prepared.config.kubelets;
    let credentials =
        KubeletCredentials::from_pem(&files.client.cert, &files.client.key, files.authority.as_deref());
    let credentials = credentials.map_err(Error::Serve)?;
    let (address_types, port) = (decided.address_types.clone(), decided.port);
    Ok(Some(KubeletConfig { credentials, address_types, port }))
}

/// What is told to programs beside this server.
pub fn authentication(prepared: &Prepared) -> PublishedAuthentication {
    let (files, decided) = (&prepared.front_proxy, &prepared.config.front_proxy);
    let made = files.made.as_deref().unwrap_or_default();
    let mut proxy_names = decided.allowed_names.clone();
    // Where any name will do, ours does.
    let is_any = files.believed.is_some() && proxy_names.is_empty();
    if !made.is_empty() && !is_any && !proxy_names.iter().any(|name| name == FRONT_PROXY_CLIENT) {
        proxy_names.push(FRONT_PROXY_CLIENT.to_owned());
    }
    PublishedAuthentication {
        client_authorities: prepared.client_ca.clone(),
        proxy_authorities: prepare::joined(files.believed.as_deref(), made),
        proxy_names,
        username_headers: decided.username_headers.clone(),
        uid_headers: decided.uid_headers.clone(),
        group_headers: decided.group_headers.clone(),
        extra_prefixes: decided.extra_prefixes.clone(),
    }
}

/// Publishes it beside what other servers of the store have published.
///
/// # Errors
/// Why the store does not take it.
pub async fn publish(registry: Registry, own: PublishedAuthentication) -> Result<(), Status> {
    let now = registry.timestamp();
    let combined = |published: &str, ours: &str| trust::combined(published, ours, now);
    registry.publish_authentication(|published| own.members(published, &combined)).await
}
