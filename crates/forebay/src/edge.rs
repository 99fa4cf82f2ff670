//! What the endpoints are told: the decided configuration and the prepared files in their words.
//!
//! [`Prepared`] in, the edge's own configuration out. Never: decides anything.

use forebay_documents::version::VersionInfo;
use forebay_endpoints::config::{
    Anonymous, ApiServerConfig, Authorization, FlowControl, FrontProxyTrust, Http2, Memory, ServiceAccounts,
    Tls,
};

use crate::config::{self, MemoryLimit};
use crate::memory::{self, Limit};
use crate::open_files;
use crate::prepare::Prepared;
use crate::version::{self, KUBERNETES_VERSION, VERSION};

/// The limit that holds, said in the log.
fn memory(limit: MemoryLimit) -> Memory {
    let found = match limit {
        MemoryLimit::None => None,
        MemoryLimit::Bytes(bytes) => Some(Limit { bytes, source: "--memory-limit" }),
        MemoryLimit::Systems => memory::detect(),
    };
    if let Some(Limit { bytes, source }) = &found {
        tracing::info!(mebibytes = bytes >> 20, source, "memory is limited");
    }
    Memory { limit: found.map(|limit| limit.bytes), read: memory::used }
}

/// See the module's doc.
///
/// - `authorization`: who is asked whether somebody may.
pub(crate) fn config(prepared: &Prepared, authorization: &Authorization) -> ApiServerConfig {
    let decided = &prepared.config;
    let (serving, limits) = (&decided.serving, &decided.limits);
    let accounts = &decided.authentication.service_accounts;
    ApiServerConfig {
        listen: decided.listen(),
        tls: Tls {
            cert_chain: prepared.serving.cert.clone(),
            key: prepared.serving.key.clone(),
            named: prepared.named.clone(),
            client_ca: Some(prepared.client_ca.clone()),
            front_proxies: prepared.front_proxy.believed.clone().map(|authorities| FrontProxyTrust {
                authorities,
                names: decided.front_proxy.allowed_names.clone(),
            }),
            provider: decided.tls.policy.provider(),
            versions: decided.tls.policy.versions(),
            http2: match serving.http2 {
                config::Http2::Enabled => Http2::Enabled,
                config::Http2::Disabled => Http2::Disabled,
            },
        },
        tokens: prepared.token_users.clone(),
        service_accounts: ServiceAccounts {
            issuers: accounts.issuers.clone(),
            api_audiences: accounts.api_audiences.clone(),
            keys: prepared.token_keys.clone(),
            max_expiration: accounts.max_token_expiration,
            pod_tokens: accounts.pod_tokens,
            secret_tokens: accounts.secret_tokens,
            keys_uri: accounts.keys_uri.clone(),
        },
        anonymous: anonymous(prepared),
        authorization: authorization.clone(),
        request_timeout: limits.request_timeout,
        flow_control: match limits.priority_and_fairness {
            true => FlowControl::PriorityAndFairness,
            false => FlowControl::MaxInFlight,
        },
        max_requests_inflight: limits.max_requests_inflight.map(|max| max as usize),
        max_mutating_requests_inflight: limits.max_mutating_requests_inflight.map(|max| max as usize),
        transport_security: serving.transport_security.clone(),
        http2_max_streams: serving.http2_max_streams_per_connection,
        connections_max: open_files::for_connections(),
        shutdown_delay: serving.shutdown_delay,
        watch_termination_grace: serving.watch_termination_grace,
        memory: memory(limits.memory),
        external_address: serving.external_hostname.clone(),
        flags: decided.operating.flags.clone(),
        version: VersionInfo {
            kubernetes: KUBERNETES_VERSION.to_string(),
            forebay: VERSION.to_string(),
            git_commit: String::new(),
            build_date: "1970-01-01T00:00:00Z".to_string(),
            platform: version::platform(),
        },
    }
}

/// Of the flag, or of the file where that says anything of it.
fn anonymous(prepared: &Prepared) -> Anonymous {
    match &prepared.authentication.configuration.anonymous {
        Some(of_file) if !of_file.enabled => Anonymous::Nothing,
        Some(of_file) if !of_file.conditions.is_empty() => {
            Anonymous::AtPaths(of_file.conditions.iter().map(|condition| condition.path.clone()).collect())
        }
        Some(_) => Anonymous::HealthAndVersion,
        None => match prepared.config.authentication.anonymous {
            config::Anonymous::HealthAndVersion => Anonymous::HealthAndVersion,
            config::Anonymous::Nothing => Anonymous::Nothing,
        },
    }
}
