//! Decisions from typed flags, through the same layers as a real start.

use std::collections::BTreeSet;
use std::ffi::OsString;

use super::*;
use crate::error::Error;
use crate::flags::layers::Raw;
use crate::flags::{argv, table};

fn host() -> Host {
    Host { name: Some("box".to_owned()), main_address: Some(IpAddr::from([192, 168, 7, 9])) }
}

fn decide(line: &str) -> Result<ServeConfig, Error> {
    let typed = argv::parse(line.split_whitespace().map(OsString::from))?;
    ServeConfig::decide(&Raw::collect(typed.flags, std::iter::empty())?, &host())
}

fn config(line: &str) -> ServeConfig {
    decide(line).unwrap_or_else(|error| panic!("{line}: {}", error.line()))
}

#[test]
fn no_flags_serve_on_loopback_and_keep_everything_below_the_data_directory() {
    let config = config("");
    assert_eq!(config.listen().to_string(), "127.0.0.1:6443");
    assert_eq!(config.tls.cert_dir, PathBuf::from("./forebay-data/pki"));
    assert_eq!(config.admin_kubeconfig(), Some(PathBuf::from("./forebay-data/admin.kubeconfig")));
    assert_eq!(config.etcd_prefix, "/registry");
    assert_eq!(config.event_ttl, Some(Duration::from_secs(3600)));
    let AuthorizationSource::Flags(chain) = &config.authorization else { panic!("flags") };
    assert_eq!(chain.types(), ["RBAC"]);
    assert_eq!(config.authentication.anonymous, Anonymous::HealthAndVersion);
    assert_eq!(
        config.limits,
        Limits {
            request_timeout: Duration::from_secs(60),
            min_request_timeout: Duration::from_secs(1800),
            priority_and_fairness: true,
            max_requests_inflight: Some(400),
            max_mutating_requests_inflight: Some(200),
            memory: MemoryLimit::Systems,
        }
    );
    assert_eq!(
        config.authentication.service_accounts.api_audiences,
        ["https://kubernetes.default.svc.cluster.local"]
    );
    assert_eq!(config.serving.advertise_address, None);
    assert_eq!(config.warnings, Vec::<String>::new());
}

/// A value that differs from the default, for every served flag.
const SAMPLES: &[(&str, &str)] = &[
    ("data-dir", "elsewhere"),
    ("etcd-prefix", "/other/"),
    ("etcd-servers", "http://127.0.0.1:2379"),
    ("event-ttl", "2h"),
    ("bind-address", "0.0.0.0"),
    ("secure-port", "0"),
    ("advertise-address", "10.1.2.3"),
    ("external-hostname", "api.example.org"),
    ("disable-http2-serving", "true"),
    ("http2-max-streams-per-connection", "7"),
    ("shutdown-delay-duration", "5s"),
    ("shutdown-watch-termination-grace-period", "30s"),
    ("cert-dir", "certs"),
    ("tls-min-version", "VersionTLS13"),
    ("tls-cipher-suites", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ("tls-curve-preferences", "29"),
    ("tls-sni-cert-key", "a.crt,a.key:a.example.org"),
    ("strict-transport-security-directives", "max-age=1,preload"),
    ("allow-privileged", "false"),
    ("client-ca-file", "ca.pem"),
    ("token-auth-file", "tokens.csv"),
    ("anonymous-auth", "false"),
    ("authentication-config", "authentication.yaml"),
    ("authentication-token-webhook-config-file", "hook.yaml"),
    ("enable-bootstrap-token-auth", "true"),
    ("api-audiences", "a,b"),
    ("service-account-issuer", "https://issuer"),
    ("service-account-extend-token-expiration", "false"),
    ("service-account-jwks-uri", "https://keys/jwks"),
    ("service-account-lookup", "false"),
    ("disable-admission-plugins", "NamespaceLifecycle"),
    ("admission-control", "NamespaceLifecycle"),
    ("audit-policy-file", "policy.yaml"),
    ("audit-log-path", "audit.log"),
    ("audit-webhook-config-file", "webhook.yaml"),
    ("encryption-provider-config", "encryption.yaml"),
    ("default-not-ready-toleration-seconds", "60"),
    ("default-unreachable-toleration-seconds", "60"),
    ("admission-control-config-file", "admission.yaml"),
    ("service-account-key-file", "sa.pub"),
    ("service-account-signing-key-file", "sa.key"),
    ("service-account-max-token-expiration", "24h"),
    ("requestheader-client-ca-file", "proxies.pem"),
    ("requestheader-allowed-names", "front"),
    ("requestheader-username-headers", "X-User"),
    ("requestheader-uid-headers", "X-Uid"),
    ("requestheader-group-headers", "X-Group"),
    ("requestheader-extra-headers-prefix", "X-Extra-"),
    ("enable-aggregator-routing", "true"),
    ("kubelet-certificate-authority", "kubelets.pem"),
    ("kubelet-preferred-address-types", "InternalIP"),
    ("kubelet-port", "10251"),
    ("authorization-mode", "AlwaysDeny"),
    ("authorization-config", "authorization.yaml"),
    ("request-timeout", "1m1s"),
    ("min-request-timeout", "60"),
    ("enable-priority-and-fairness", "false"),
    ("max-requests-inflight", "0"),
    ("max-mutating-requests-inflight", "1"),
    ("memory-limit", "512Mi"),
    ("service-cluster-ip-range", "10.96.0.0/16,fd00::/108"),
    ("controllers", "namespace-controller"),
    ("cluster-signing-duration", "1h"),
    ("tracing-config-file", "tracing.yaml"),
    ("service-node-port-range", "20000+100"),
    ("feature-gates", "AllAlpha=true"),
    ("v", "4"),
];

/// A value of each flag of an audit log that is kept and sent.
const AUDIT_SAMPLES: &[(&str, &str)] = &[
    ("audit-log-batch-buffer-size", "20000"),
    ("audit-log-batch-max-size", "2"),
    ("audit-log-batch-max-wait", "1s"),
    ("audit-log-batch-throttle-burst", "4"),
    ("audit-log-batch-throttle-enable", "false"),
    ("audit-log-batch-throttle-qps", "3"),
    ("audit-log-compress", "true"),
    ("audit-log-format", "legacy"),
    ("audit-log-maxage", "1"),
    ("audit-log-maxbackup", "2"),
    ("audit-log-maxsize", "3"),
    ("audit-log-mode", "batch"),
    ("audit-log-truncate-enabled", "true"),
    ("audit-log-truncate-max-batch-size", "20000000"),
    ("audit-log-truncate-max-event-size", "2000"),
    ("audit-webhook-batch-buffer-size", "20000"),
    ("audit-webhook-batch-initial-backoff", "7s"),
    ("audit-webhook-batch-max-size", "2"),
    ("audit-webhook-batch-max-wait", "1s"),
    ("audit-webhook-batch-throttle-burst", "4"),
    ("audit-webhook-batch-throttle-enable", "false"),
    ("audit-webhook-batch-throttle-qps", "3"),
    ("audit-webhook-initial-backoff", "7s"),
    ("audit-webhook-mode", "blocking"),
    ("audit-webhook-truncate-enabled", "true"),
    ("audit-webhook-truncate-max-batch-size", "20000000"),
    ("audit-webhook-truncate-max-event-size", "2000"),
];

#[test]
fn every_served_flag_changes_what_is_decided() {
    let default = format!("{:?}", config(""));
    for (flag, value) in SAMPLES {
        assert_ne!(format!("{:?}", config(&format!("--{flag}={value}"))), default, "--{flag}");
    }
    for (cert, key) in [
        ("tls-cert-file", "tls-private-key-file"),
        ("proxy-client-cert-file", "proxy-client-key-file"),
        ("kubelet-client-certificate", "kubelet-client-key"),
    ] {
        assert_ne!(format!("{:?}", config(&format!("--{cert}=a --{key}=b"))), default, "--{cert}");
    }
    let webhook = "--authorization-mode=Webhook --authorization-webhook-config-file=k";
    let asked = format!("{:?}", config(webhook));
    for (flag, value) in [
        ("authorization-webhook-version", "v1"),
        ("authorization-webhook-cache-authorized-ttl", "1s"),
        ("authorization-webhook-cache-unauthorized-ttl", "0"),
    ] {
        assert_ne!(format!("{:?}", config(&format!("{webhook} --{flag}={value}"))), asked, "--{flag}");
    }
    let audited = "--audit-policy-file=p --audit-log-path=l --audit-webhook-config-file=w --audit-log-batch-throttle-enable --audit-log-batch-throttle-qps=1 --audit-log-batch-throttle-burst=1";
    let noted = format!("{:?}", config(audited));
    for (flag, value) in AUDIT_SAMPLES {
        assert_ne!(format!("{:?}", config(&format!("{audited} --{flag}={value}"))), noted, "--{flag}");
    }
    let encrypted = "--encryption-provider-config=e";
    let reloaded = config(&format!("{encrypted} --encryption-provider-config-automatic-reload"));
    assert_ne!(format!("{reloaded:?}"), format!("{:?}", config(encrypted)));
    let mut sampled: BTreeSet<_> = SAMPLES.iter().chain(AUDIT_SAMPLES).map(|(flag, _)| *flag).collect();
    // What is served is on; what is not cannot be turned on.
    assert!(decide("--enable-admission-plugins=ImagePolicyWebhook").is_err());
    assert_ne!(format!("{:?}", config("--enable-admission-plugins=NodeRestriction")), default);
    sampled.insert("enable-admission-plugins");
    for of in ["config-file", "version", "cache-authorized-ttl", "cache-unauthorized-ttl"] {
        let flag = format!("authorization-webhook-{of}");
        sampled.insert(table::find(&flag).expect("a flag").name);
    }
    let etcd = format!("{:?}", config("--etcd-servers=https://a --etcd-cafile=a"));
    for more in ["--etcd-certfile=a --etcd-keyfile=b", "--etcd-compaction-interval=1m", "--etcd-cafile=b"] {
        assert_ne!(
            format!("{:?}", config(&format!("--etcd-servers=https://a --etcd-cafile=a {more}"))),
            etcd
        );
    }
    let oidc = "--oidc-issuer-url=https://i --oidc-client-id=c";
    let hook = "--authentication-token-webhook-config-file=h";
    let issuer = format!("{:?}", config(oidc));
    assert_ne!(issuer, default);
    for more in [
        "--oidc-ca-file=ca.pem",
        "--oidc-username-claim=email",
        "--oidc-username-prefix=-",
        "--oidc-groups-claim=groups",
        "--oidc-groups-claim=groups --oidc-groups-prefix=oidc:",
        "--oidc-signing-algs=ES256,RS256",
        "--oidc-signing-algs=ES512",
        "--oidc-required-claim=hd=example.com",
    ] {
        assert_ne!(format!("{:?}", config(&format!("{oidc} {more}"))), issuer, "{more}");
    }
    for more in ["--authentication-token-webhook-version=v1", "--authentication-token-webhook-cache-ttl=0s"] {
        let both = format!("{:?}", config(&format!("{hook} {more}")));
        assert_ne!(both, format!("{:?}", config(hook)), "{more}");
    }
    // The pairs, what goes with etcd, with a provider and with a webhook are sampled above; the file is read
    // by the layers.
    let apart = BTreeSet::from([
        "tls-cert-file",
        "tls-private-key-file",
        "proxy-client-cert-file",
        "proxy-client-key-file",
        "kubelet-client-certificate",
        "kubelet-client-key",
        "oidc-issuer-url",
        "oidc-client-id",
        "oidc-ca-file",
        "oidc-username-claim",
        "oidc-username-prefix",
        "oidc-groups-claim",
        "oidc-groups-prefix",
        "oidc-signing-algs",
        "oidc-required-claim",
        "authentication-token-webhook-version",
        "authentication-token-webhook-cache-ttl",
        "etcd-cafile",
        "etcd-certfile",
        "etcd-keyfile",
        "etcd-compaction-interval",
        "config",
        "encryption-provider-config-automatic-reload",
        // There is one version.
        "audit-log-version",
        "audit-webhook-version",
    ]);
    let served: BTreeSet<_> = table::served().map(|flag| flag.name).collect();
    assert_eq!(&sampled | &apart, served);
}

#[test]
fn what_cannot_be_done_names_the_flag_and_the_reason() {
    let rows = [
        ("--secure-port=65536", 2, "invalid argument \"65536\" for --secure-port: more than 65535"),
        ("--secure-port=x", 2, "invalid argument \"x\" for --secure-port: not a whole number"),
        (
            "--bind-address=localhost",
            2,
            "invalid argument \"localhost\" for --bind-address: not an IP address",
        ),
        (
            "--external-hostname=a_b-.c",
            2,
            "invalid argument \"a_b-.c\" for --external-hostname: not a host name",
        ),
        ("--etcd-prefix=/", 2, "invalid argument \"/\" for --etcd-prefix: not a path such as /registry"),
        (
            "--etcd-servers=http://a:b",
            2,
            "invalid argument \"http://a:b\" for --etcd-servers: \"http://a:b\" is not the URL of an etcd member, such as https://10.0.0.1:2379",
        ),
        ("--etcd-servers=https://a", 1, "--etcd-servers at https need --etcd-cafile"),
        (
            "--etcd-servers=http://a --etcd-certfile=b",
            1,
            "--etcd-certfile and --etcd-keyfile need each other",
        ),
        ("--event-ttl=-1h", 2, "invalid argument \"-1h\" for --event-ttl: can not be negative value"),
        (
            "--request-timeout=60",
            2,
            "invalid argument \"60\" for --request-timeout: missing unit (such as s, m or h)",
        ),
        ("--request-timeout=0", 2, "invalid argument \"0\" for --request-timeout: must be more than 0"),
        (
            "--max-requests-inflight=-1",
            2,
            "invalid argument \"-1\" for --max-requests-inflight: can not be negative value",
        ),
        ("--anonymous-auth=maybe", 2, "invalid argument \"maybe\" for --anonymous-auth: not true or false"),
        ("--v=-1", 2, "invalid argument \"-1\" for --v: can not be negative value"),
        (
            "--feature-gates=AllAlpha=true,Nope=true",
            2,
            "invalid argument \"AllAlpha=true,Nope=true\" for --feature-gates: unrecognized feature gate: Nope",
        ),
        (
            "--controllers=*,-job-controller",
            2,
            "invalid argument \"*,-job-controller\" for --controllers: \"job-controller\" is not a controller of this server; there are: namespace-controller, garbage-collector-controller, serviceaccount-controller, root-ca-certificate-publisher-controller, validatingadmissionpolicy-status-controller, resourcequota-controller, persistentvolumeclaim-protection-controller, persistentvolume-protection-controller, volumeattributesclass-protection-controller, clusterrole-aggregation-controller, ttl-after-finished-controller, endpoints-controller, endpointslice-controller, endpointslice-mirroring-controller, bootstrap-signer-controller, token-cleaner-controller, certificatesigningrequest-signing-controller, certificatesigningrequest-approving-controller, certificatesigningrequest-cleaner-controller",
        ),
        (
            "--authorization-mode=Nope",
            2,
            "invalid argument \"Nope\" for --authorization-mode: authorization-mode \"Nope\" is not a valid mode",
        ),
        (
            "--authorization-mode=",
            2,
            "invalid argument \"\" for --authorization-mode: at least one authorization-mode must be passed",
        ),
        (
            "--service-cluster-ip-range=fd00::/48",
            2,
            "invalid argument \"fd00::/48\" for --service-cluster-ip-range: shortest allowed prefix length for service CIDR is 64, got 48",
        ),
        (
            "--service-node-port-range=5-4",
            2,
            "invalid argument \"5-4\" for --service-node-port-range: end port cannot be less than start port: 5-4",
        ),
        (
            "--service-cluster-ip-range=10.0.0.0/30",
            2,
            "invalid argument \"10.0.0.0/30\" for --service-cluster-ip-range: the service cluster IP range must be at least 8 IP addresses",
        ),
        (
            "--service-cluster-ip-range=10.0.0.0/24,10.1.0.0/24",
            2,
            "invalid argument \"10.0.0.0/24,10.1.0.0/24\" for --service-cluster-ip-range: the two ranges must be of different IP family",
        ),
        (
            "--service-account-max-token-expiration=1m",
            2,
            "invalid argument \"1m\" for --service-account-max-token-expiration: must be between 1 hour and 2^32 seconds",
        ),
        (
            "--service-account-issuer=a:b",
            2,
            "invalid argument \"a:b\" for --service-account-issuer: contains a ':' but is not a URL",
        ),
        (
            "--service-account-issuer=a --service-account-issuer=a",
            2,
            "invalid argument \"a,a\" for --service-account-issuer: contains an issuer twice",
        ),
        (
            "--oidc-username-claim=email",
            1,
            "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set",
        ),
        (
            "--oidc-issuer-url=https://i --oidc-client-id=c --authentication-config=f",
            1,
            "authentication-config file and oidc-* flags are mutually exclusive",
        ),
        (
            "--oidc-issuer-url=https://i --oidc-client-id=c --oidc-signing-algs=RS256,HS256",
            2,
            "invalid argument \"RS256,HS256\" for --oidc-signing-algs: oidc: unsupported signing alg: \"HS256\"",
        ),
        (
            "--oidc-issuer-url=https://i --oidc-client-id=c --oidc-required-claim=hd",
            2,
            "invalid argument \"hd\" for --oidc-required-claim: malformed pair, expect string=string",
        ),
        (
            "--authentication-token-webhook-version=v2",
            2,
            "invalid argument \"v2\" for --authentication-token-webhook-version: unsupported authentication webhook version \"v2\", supported versions are \"v1\", \"v1beta1\"",
        ),
        ("--tls-cert-file=a", 1, "--tls-cert-file needs --tls-private-key-file"),
        (
            "--tls-sni-cert-key=a,b:c --tls-sni-cert-key=a",
            2,
            "invalid argument \"a,b:c,a\" for --tls-sni-cert-key: expected comma separated certificate and key file paths",
        ),
        (
            "--tls-curve-preferences=29,4588",
            2,
            "invalid argument \"29,4588\" for --tls-curve-preferences: curve preference 4588 (X25519MLKEM768) is not spoken here; there are 23 (CurveP256), 24 (CurveP384), 29 (X25519)",
        ),
        (
            "--strict-transport-security-directives=max-age=1,off",
            2,
            "invalid argument \"max-age=1,off\" for --strict-transport-security-directives: allowed values: max-age=expireTime, includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information",
        ),
        (
            "--strict-transport-security-directives=max-age=\u{7f}",
            2,
            "invalid argument \"max-age=\\u{7f}\" for --strict-transport-security-directives: has what no header may have",
        ),
        ("--allow-privileged=no", 2, "invalid argument \"no\" for --allow-privileged: not true or false"),
        ("--tls-private-key-file=a", 1, "--tls-private-key-file needs --tls-cert-file"),
        (
            "--etcd-servers-overrides=/events#http://127.0.0.1:2379",
            1,
            "--etcd-servers-overrides is not served yet: all objects are kept in one store",
        ),
    ];
    for (line, code, want) in rows {
        let error = decide(line).expect_err(line);
        assert_eq!((error.line().as_str(), error.exit_code()), (want, code), "{line}");
    }
}

#[test]
fn warnings_come_once_for_each_kind() {
    let config = config(
        "--profiling=false --kubelet-timeout=1s --feature-gates=AllAlpha=true,AllBeta=false --authorization-mode=Node,RBAC",
    );
    assert_eq!(
        config.warnings,
        [
            "these flags have no effect: --kubelet-timeout, --profiling",
            "these feature gates have no effect: AllAlpha, AllBeta",
        ]
    );
}

#[test]
fn admission_plugins_are_known_by_name() {
    use forebay_registry::Admission;
    let without = |names: &[&str]| format!("{:?}", Admission::without(names.iter().copied()));
    for (line, want) in [
        ("", Ok(without(&[]))),
        ("--enable-admission-plugins=NamespaceLifecycle,ServiceAccount", Ok(without(&[]))),
        ("--disable-admission-plugins=ServiceAccount,PodNodeSelector", Ok(without(&["ServiceAccount"]))),
        (
            "--disable-admission-plugins=NamespaceLifecycle,Priority,PodNodeSelector",
            Ok(without(&["NamespaceLifecycle", "Priority"])),
        ),
        (
            "--enable-admission-plugins=AlwaysPullImages,Priority",
            Ok(format!("{:?}", Admission::default().with(["AlwaysPullImages"]))),
        ),
        (
            "--admission-control=Priority --disable-admission-plugins=RuntimeClass",
            Err(
                "--admission-control and --enable-admission-plugins/--disable-admission-plugins are mutually exclusive",
            ),
        ),
        (
            "--enable-admission-plugins=ImagePolicyWebhook",
            Err(
                "invalid argument \"ImagePolicyWebhook\" for --enable-admission-plugins: plugin \"ImagePolicyWebhook\" cannot be turned on: no image would be asked about: let an admission webhook judge pods",
            ),
        ),
        (
            "--enable-admission-plugins=Nope",
            Err("invalid argument \"Nope\" for --enable-admission-plugins: plugin \"Nope\" is unknown"),
        ),
        (
            "--enable-admission-plugins=PodSecurity,ImagePolicyWebhook",
            Err(
                "invalid argument \"PodSecurity,ImagePolicyWebhook\" for --enable-admission-plugins: plugin \"ImagePolicyWebhook\" cannot be turned on: no image would be asked about: let an admission webhook judge pods",
            ),
        ),
        (
            "--enable-admission-plugins=ServiceAccount --disable-admission-plugins=ServiceAccount",
            Err(
                "invalid argument \"ServiceAccount\" for --enable-admission-plugins: \"ServiceAccount\" is in --disable-admission-plugins too",
            ),
        ),
    ] {
        let got = decide(line).map(|config| format!("{:?}", config.admission)).map_err(|error| error.line());
        assert_eq!(got, want.map_err(str::to_owned), "{line}");
    }
    let only = config("--admission-control=ResourceQuota,AlwaysPullImages").admission;
    assert!(only.has("ResourceQuota") && !only.has("MutatingAdmissionWebhook"));
    assert!(only.is_turned_on("AlwaysPullImages") && !only.is_turned_on("PodNodeSelector"));
    let off = config("--disable-admission-plugins=NamespaceLifecycle,Priority,PodNodeSelector");
    assert_eq!(off.warnings, Vec::<String>::new());
}

#[test]
fn tokens_are_for_every_issuer_unless_it_is_said() {
    let accounts = |line: &str| config(line).authentication.service_accounts;
    let two = "--service-account-issuer=https://a --service-account-issuer=https://b";
    assert_eq!(accounts(two).api_audiences, ["https://a", "https://b"]);
    assert_eq!(accounts(&format!("{two} --api-audiences=x,y")).api_audiences, ["x", "y"]);
    let plain = accounts("");
    assert_eq!((plain.pod_tokens, plain.secret_tokens), (PodTokens::Extended, SecretTokens::LookedUp));
    let other = accounts(
        "--service-account-extend-token-expiration=false --service-account-lookup=false --service-account-jwks-uri=https://k/j",
    );
    assert_eq!((other.pod_tokens, other.secret_tokens), (PodTokens::AsRequested, SecretTokens::Believed));
    assert_eq!(other.keys_uri.as_deref(), Some("https://k/j"));
}

#[test]
fn the_certificate_covers_every_name_clients_use() {
    let names = config("--bind-address=0.0.0.0 --external-hostname=API.example.org --service-cluster-ip-range=10.96.0.0/16,fd00::/108").tls.names;
    assert_eq!(
        names.dns,
        [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "api.example.org",
            "box",
        ]
    );
    let ips: Vec<_> = names.ips.iter().map(IpAddr::to_string).collect();
    assert_eq!(ips, ["127.0.0.1", "::1", "10.96.0.1", "fd00::1", "192.168.7.9"]);
}

#[test]
fn clients_on_this_machine_get_an_address_they_can_reach() {
    let rows = [
        ("", "https://127.0.0.1:7"),
        ("--bind-address=0.0.0.0", "https://127.0.0.1:7"),
        ("--bind-address=::", "https://[::1]:7"),
        ("--bind-address=10.1.2.3", "https://10.1.2.3:7"),
    ];
    for (line, want) in rows {
        assert_eq!(config(line).local_url(7), want, "{line}");
    }
}
