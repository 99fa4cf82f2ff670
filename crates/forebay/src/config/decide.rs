//! The decisions, flag by flag: what each value means and which values make no sense.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use forebay_controllers::Selection;
use forebay_encryption::Reload;
use forebay_etcd::Endpoint;
use forebay_pki::{CertificateFiles, ServingNames};
use forebay_registry::{Privileged, ServiceRouting};

use super::reader::Reader;
use super::{
    Administrator, Cidr, EncryptionFile, EtcdConfig, Host, Http2, Limits, MemoryLimit, ServeConfig, Serving,
    admission, audit, authentication, authorization, front_proxy, operating, tls,
};
use crate::error::Error;
use crate::flags::layers::Raw;
use crate::flags::{gates, values};

impl ServeConfig {
    /// Decides on what was typed.
    ///
    /// # Errors
    /// The first flag that cannot be done as asked.
    pub fn decide(raw: &Raw, host: &Host) -> Result<Self, Error> {
        let read = Reader { raw };
        let mut warnings = raw.warnings.clone();
        let harmless = raw.without_effect()?;
        warnings.extend(no_effect("flags", harmless.iter().map(|name| format!("--{name}"))));
        warnings.extend(no_effect("feature gates", feature_gates(&read)?.into_iter()));

        let admission = admission::decide(&read)?;
        let data_dir = read.parsed("data-dir", |value| Ok(PathBuf::from(value)))?;
        let service_cluster_ip_ranges = service_ranges(&read)?;
        let serving = serving(&read, host)?;
        let names = serving_names(&serving, &service_cluster_ip_ranges, host);
        Ok(Self {
            etcd_prefix: read.parsed("etcd-prefix", etcd_prefix)?,
            etcd: etcd(&read)?,
            encryption: encryption(&read)?,
            event_ttl: read.parsed("event-ttl", unless_zero)?,
            administrator: Administrator::Made,
            tls: tls::decide(&read, &data_dir, names, &mut warnings)?,
            authentication: authentication::decide(&read)?,
            front_proxy: front_proxy::decide(&read)?,
            kubelets: front_proxy::kubelets(&read)?,
            authorization: authorization::decide(&read)?,
            controllers: controllers(&read)?,
            limits: limits(&read)?,
            operating: operating::decide(&read)?,
            admission,
            privileged: privileged(&read)?,
            audit: audit::decide(&read, &mut warnings)?,
            admission_file: read.path("admission-control-config-file"),
            verbosity: read.parsed("v", |value| values::number(value, i32::MAX as u32))?,
            data_dir,
            serving,
            service_cluster_ip_ranges,
            service_routing: service_routing(&read)?,
            service_node_ports: read.parsed("service-node-port-range", str::parse)?,
            warnings,
        })
    }
}

fn service_routing(read: &Reader) -> Result<ServiceRouting, Error> {
    Ok(match read.parsed("enable-aggregator-routing", values::bool)? {
        true => ServiceRouting::Endpoints,
        false => ServiceRouting::ClusterAddress,
    })
}

fn privileged(read: &Reader) -> Result<Privileged, Error> {
    Ok(match read.parsed("allow-privileged", values::bool)? {
        true => Privileged::Allowed,
        false => Privileged::Disallowed,
    })
}

fn no_effect(what: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let names: Vec<_> = names.collect();
    (!names.is_empty()).then(|| format!("these {what} have no effect: {}", names.join(", ")))
}

fn feature_gates(read: &Reader) -> Result<Vec<String>, Error> {
    let settings = read.list("feature-gates");
    let names: Result<Vec<_>, _> =
        settings.iter().map(|setting| gates::check(setting).map(str::to_owned)).collect();
    let names = names.map(|all| all.into_iter().filter(|name| !gates::has_effect(name)).collect());
    names.map_err(|reason| read.refuse("feature-gates", reason))
}

fn controllers(read: &Reader) -> Result<Selection, Error> {
    let names = read.list("controllers");
    let selection = Selection::parse(names.iter().map(String::as_str));
    selection.map_err(|unknown| read.refuse("controllers", unknown.to_string()))
}

fn serving(read: &Reader, host: &Host) -> Result<Serving, Error> {
    let bind_address = read.parsed("bind-address", address)?;
    let advertised = read.optional("advertise-address", address)?;
    let reachable = if bind_address.is_unspecified() { host.main_address } else { Some(bind_address) };
    Ok(Serving {
        bind_address,
        secure_port: read.parsed("secure-port", |value| values::number(value, u32::from(u16::MAX)))? as u16,
        advertise_address: advertised
            .or(reachable)
            .filter(|address| advertised.is_some() || !address.is_loopback()),
        external_hostname: read.optional("external-hostname", host_name)?,
        http2: if read.parsed("disable-http2-serving", values::bool)? {
            Http2::Disabled
        } else {
            Http2::Enabled
        },
        http2_max_streams_per_connection: read
            .parsed("http2-max-streams-per-connection", count_unless_zero)?,
        transport_security: tls::transport_security(read)?,
        shutdown_delay: read.parsed("shutdown-delay-duration", values::duration)?,
        watch_termination_grace: read.parsed("shutdown-watch-termination-grace-period", values::duration)?,
    })
}

fn etcd(read: &Reader) -> Result<Option<EtcdConfig>, Error> {
    let endpoints: Result<Vec<Endpoint>, _> =
        read.list("etcd-servers").iter().filter(|url| !url.is_empty()).map(|url| url.parse()).collect();
    let endpoints: Vec<Endpoint> =
        endpoints.map_err(|error| read.refuse("etcd-servers", error.to_string()))?;
    if endpoints.is_empty() {
        return Ok(None);
    }
    let client = match (read.path("etcd-certfile"), read.path("etcd-keyfile")) {
        (Some(cert), Some(key)) => Some(CertificateFiles { cert, key }),
        (None, None) => None,
        _ => return Err(Error::Conflict("--etcd-certfile and --etcd-keyfile need each other".to_owned())),
    };
    let ca_file = read.path("etcd-cafile");
    if ca_file.is_none() && endpoints.iter().any(|endpoint| endpoint.tls) {
        return Err(Error::Conflict("--etcd-servers at https need --etcd-cafile".to_owned()));
    }
    let compaction_interval = read.parsed("etcd-compaction-interval", unless_zero)?;
    Ok(Some(EtcdConfig { endpoints, ca_file, client, compaction_interval }))
}

fn encryption(read: &Reader) -> Result<Option<EncryptionFile>, Error> {
    const FILE: &str = "encryption-provider-config";
    const RELOAD: &str = "encryption-provider-config-automatic-reload";
    let is_reloaded = read.parsed(RELOAD, values::bool)?;
    match (read.path(FILE), is_reloaded) {
        (None, false) => Ok(None),
        (None, true) => Err(Error::Conflict(format!("--{RELOAD} must be set with --{FILE}"))),
        (Some(file), true) => Ok(Some(EncryptionFile { file, reload: Reload::Automatic })),
        (Some(file), false) => Ok(Some(EncryptionFile { file, reload: Reload::Never })),
    }
}

fn limits(read: &Reader) -> Result<Limits, Error> {
    let request_timeout = read.parsed("request-timeout", |value| match values::duration(value)? {
        Duration::ZERO => Err("must be more than 0".to_owned()),
        timeout => Ok(timeout),
    })?;
    let seconds = read.parsed("min-request-timeout", |value| values::number(value, i32::MAX as u32))?;
    Ok(Limits {
        request_timeout,
        min_request_timeout: Duration::from_secs(u64::from(seconds)),
        priority_and_fairness: read.parsed("enable-priority-and-fairness", values::bool)?,
        max_requests_inflight: read.parsed("max-requests-inflight", count_unless_zero)?,
        max_mutating_requests_inflight: read.parsed("max-mutating-requests-inflight", count_unless_zero)?,
        memory: read.optional("memory-limit", memory_limit)?.unwrap_or(MemoryLimit::Systems),
    })
}

/// With less than that the server would refuse most of what it is asked for.
const MEMORY_MIN: u64 = 64 << 20;

fn memory_limit(text: &str) -> Result<MemoryLimit, String> {
    match values::bytes(text)? {
        0 => Ok(MemoryLimit::None),
        bytes if bytes < MEMORY_MIN => Err("less than 64Mi".to_owned()),
        bytes => Ok(MemoryLimit::Bytes(bytes)),
    }
}

/// A Service range holds at least 8 addresses, as in kube-apiserver.
const SERVICE_HOST_BITS_MIN: u8 = 3;
/// And, of IPv6, at most 2^64.
const SERVICE_HOST_BITS_MAX: u8 = 64;

fn service_ranges(read: &Reader) -> Result<Vec<Cidr>, Error> {
    read.parsed("service-cluster-ip-range", |value| {
        let ranges =
            value.split(',').map(|range| service_range(range.trim())).collect::<Result<Vec<_>, _>>()?;
        match ranges.as_slice() {
            [_] => Ok(ranges),
            [first, second] if first.network().is_ipv4() != second.network().is_ipv4() => Ok(ranges),
            [_, _] => Err("the two ranges must be of different IP family".to_owned()),
            _ => Err("must not contain more than two entries".to_owned()),
        }
    })
}

fn service_range(text: &str) -> Result<Cidr, String> {
    let range: Cidr = text.parse()?;
    if range.host_bits() > SERVICE_HOST_BITS_MAX {
        return Err(format!("shortest allowed prefix length for service CIDR is 64, got {}", range.prefix()));
    }
    if range.host_bits() < SERVICE_HOST_BITS_MIN {
        return Err("the service cluster IP range must be at least 8 IP addresses".to_owned());
    }
    Ok(range)
}

fn serving_names(serving: &Serving, ranges: &[Cidr], host: &Host) -> ServingNames {
    let mut names = ServingNames::default();
    for name in ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"] {
        add_dns(&mut names, name);
    }
    add_dns(&mut names, "kubernetes.default.svc.cluster.local");
    add_ip(&mut names, Ipv4Addr::LOCALHOST.into());
    add_ip(&mut names, Ipv6Addr::LOCALHOST.into());
    for range in ranges {
        add_ip(&mut names, range.first_address());
    }
    add_ip(&mut names, serving.bind_address);
    if let Some(address) = serving.advertise_address {
        add_ip(&mut names, address);
    }
    for name in [serving.external_hostname.as_deref(), host.name.as_deref()].into_iter().flatten() {
        match name.parse() {
            Ok(address) => add_ip(&mut names, address),
            Err(_) => add_dns(&mut names, name),
        }
    }
    names
}

fn add_dns(names: &mut ServingNames, name: &str) {
    if host_name(name).is_ok() && !names.dns.iter().any(|known| known == name) {
        names.dns.push(name.to_owned());
    }
}

fn add_ip(names: &mut ServingNames, address: IpAddr) {
    if !address.is_unspecified() && !names.ips.contains(&address) {
        names.ips.push(address);
    }
}

fn address(value: &str) -> Result<IpAddr, String> {
    value.parse().map_err(|_| "not an IP address".to_owned())
}

/// A DNS name in lower case, or an IP address.
fn host_name(value: &str) -> Result<String, String> {
    let label = |label: &str| {
        let inner =
            label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
        inner && !label.is_empty() && label.len() <= 63 && !label.starts_with('-') && !label.ends_with('-')
    };
    let name = value.to_ascii_lowercase();
    if name.parse::<IpAddr>().is_ok() || (name.len() <= 253 && name.split('.').all(label)) {
        Ok(name)
    } else {
        Err("not a host name".to_owned())
    }
}

/// One slash in front, none behind.
fn etcd_prefix(value: &str) -> Result<String, String> {
    let parts: Vec<_> = value.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() || parts.iter().any(|part| matches!(*part, "." | "..")) {
        return Err("not a path such as /registry".to_owned());
    }
    Ok(format!("/{}", parts.join("/")))
}

fn unless_zero(value: &str) -> Result<Option<Duration>, String> {
    Ok(Some(values::duration(value)?).filter(|duration| !duration.is_zero()))
}

fn count_unless_zero(value: &str) -> Result<Option<u32>, String> {
    Ok(Some(values::number(value, i32::MAX as u32)?).filter(|count| *count > 0))
}
