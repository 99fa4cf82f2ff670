//! What the flags of manifests come to, kubeadm's read from its own source.

use std::path::{Path, PathBuf};

use forebay_registry::Privileged;

use super::*;
use crate::version::KUBERNETES_VERSION;

fn typed(flags: &[String]) -> Layer {
    argv::parse(flags.iter().map(OsString::from)).expect("parsed").flags
}

fn decided(flags: &[String]) -> Result<ServeConfig, Error> {
    let host = Host { name: Some("node".to_owned()), main_address: Some([10, 1, 2, 3].into()) };
    decide(Raw::collect(typed(flags), std::iter::empty())?, &host)
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// The text between two marks.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("no {from}"));
    rest.split_once(to).unwrap_or_else(|| panic!("no {to} behind {from}")).0
}

/// The flags that kubeadm gives to kube-apiserver, and the Go expression of each value; `None` after a skip
/// was announced.
fn written_by_kubeadm() -> Option<Vec<(String, String)>> {
    let module = forebay_golden::module_at("k8s.io/kubernetes", KUBERNETES_VERSION)?;
    let source = module.join("cmd/kubeadm/app/phases/controlplane/manifests.go");
    let source = std::fs::read_to_string(source).expect("kubeadm's source");
    let function = between(&source, "\nfunc getAPIServerCommand(", "\n}\n");
    let mut found = Vec::new();
    for line in function.lines() {
        let listed = line.trim().strip_prefix("{Name: \"").and_then(|rest| rest.split_once("\", Value: "));
        let set = line
            .split_once("SetArgValues(defaultArguments, \"")
            .and_then(|(_, rest)| rest.split_once("\", "));
        if let Some((name, value)) = listed.or(set) {
            let end = if listed.is_some() { "}" } else { ", 1)" };
            found.push((name.to_owned(), value.rsplit_once(end).expect("its end").0.to_owned()));
        }
    }
    Some(found)
}

/// What such an expression comes to on a first node.
fn value(name: &str, expression: &str) -> String {
    if let Some(literal) = expression.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return literal.to_owned();
    }
    match name {
        "advertise-address" => "192.168.7.5".to_owned(),
        "service-cluster-ip-range" => "10.96.0.0/12".to_owned(),
        "service-account-issuer" => "https://kubernetes.default.svc.cluster.local".to_owned(),
        "secure-port" => "6443".to_owned(),
        "etcd-servers" => "https://127.0.0.1:2379".to_owned(),
        "authorization-mode" => "Node,RBAC".to_owned(),
        _ if expression.contains("CertificatesDir") || expression.contains("External.") => {
            format!("/etc/kubernetes/pki/{name}")
        }
        _ => panic!("what is --{name}={expression}?"),
    }
}

#[test]
fn every_flag_of_the_manifest_that_kubeadm_writes_means_what_it_means_there() {
    let Some(written) = written_by_kubeadm() else { return };
    let mut flags: Vec<String> =
        written.iter().map(|(name, expression)| format!("--{name}={}", value(name, expression))).collect();
    flags.sort();
    // Of etcd the source has two branches.
    flags.dedup();
    assert!(flags.len() >= 27, "{flags:?}");
    assert_eq!(Starter::of(&typed(&flags)), Starter::Cluster);

    let config = decided(&flags).expect("every flag is taken");
    assert_eq!(config.warnings, Vec::<String>::new());
    assert_eq!(config.privileged, Privileged::Allowed);
    let file = |name: &str| Path::new("/etc/kubernetes/pki").join(name);
    let pair = |files: &Option<forebay_pki::CertificateFiles>| {
        files.as_ref().map(|files| (files.cert.clone(), files.key.clone()))
    };
    let both = |cert: &str, key: &str| Some((file(cert), file(key)));
    assert_eq!(config.listen().to_string(), "0.0.0.0:6443");
    assert_eq!(config.serving.advertise_address, Some([192, 168, 7, 5].into()));
    assert!(config.controllers.is_empty(), "kube-controller-manager has them");
    assert_eq!(config.administrator, Administrator::None);
    assert_eq!(config.admin_kubeconfig(), None);
    let etcd = config.etcd.as_ref().expect("etcd");
    assert_eq!(
        etcd.endpoints.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["https://127.0.0.1:2379"]
    );
    assert_eq!(
        (&etcd.ca_file, pair(&etcd.client)),
        (&Some(file("etcd-cafile")), both("etcd-certfile", "etcd-keyfile"))
    );
    assert_eq!(pair(&config.tls.given), both("tls-cert-file", "tls-private-key-file"));
    assert_eq!(config.tls.client_ca_file, Some(file("client-ca-file")));
    assert_eq!(pair(&config.kubelets.client), both("kubelet-client-certificate", "kubelet-client-key"));
    assert_eq!(config.kubelets.address_types, ["InternalIP", "ExternalIP", "Hostname"]);
    let proxy = &config.front_proxy;
    assert_eq!(pair(&proxy.client), both("proxy-client-cert-file", "proxy-client-key-file"));
    assert_eq!(proxy.client_ca_file, Some(file("requestheader-client-ca-file")));
    assert_eq!(proxy.allowed_names, ["front-proxy-client"]);
    assert_eq!(
        (&proxy.username_headers[..], &proxy.group_headers[..]),
        (&words("X-Remote-User")[..], &words("X-Remote-Group")[..])
    );
    assert_eq!(proxy.extra_prefixes, ["X-Remote-Extra-"]);
    let accounts = &config.authentication.service_accounts;
    assert_eq!(accounts.issuers, ["https://kubernetes.default.svc.cluster.local"]);
    assert_eq!(accounts.signing_key_file, Some(file("service-account-signing-key-file")));
    assert_eq!(accounts.key_files, [file("service-account-key-file")]);
    assert_eq!(config.authentication.bootstrap_tokens, forebay_auth::BootstrapTokenUse::Believed);
    let ranges: Vec<_> = config.service_cluster_ip_ranges.iter().map(|range| range.first_address()).collect();
    assert_eq!(ranges, [std::net::IpAddr::from([10, 96, 0, 1])]);
    assert!(config.admission.is_turned_on("NodeRestriction"));
    assert_eq!(config.operating.flags["authorization-mode"], "[Node,RBAC]");
}

#[test]
fn who_started_it_is_told_by_the_certificate_and_the_etcd_that_it_is_given() {
    let rows = [
        ("--cert-dir=d --etcd-servers=http://127.0.0.1:2379", Starter::Envtest),
        ("--cert-dir=d --etcd-servers=http://localhost:2379 --tls-cert-file=", Starter::Envtest),
        ("--cert-dir=d --etcd-servers=http://[::1]:2379", Starter::Envtest),
        ("--cert-dir=d", Starter::Envtest),
        ("", Starter::Envtest),
        ("--cert-dir=d --etcd-servers=http://127.0.0.1:2379 --tls-cert-file=c", Starter::Cluster),
        ("--etcd-servers=https://127.0.0.1:2379", Starter::Cluster),
        ("--etcd-servers=http://127.0.0.1:2379,http://10.0.0.1:2379", Starter::Cluster),
        ("--etcd-servers=http://etcd.kube-system.svc:2379", Starter::Cluster),
        ("--etcd-servers=nonsense://", Starter::Cluster),
    ];
    for (line, want) in rows {
        assert_eq!(Starter::of(&typed(&words(line))), want, "{line}");
    }
}

const ALL: &str = "--etcd-servers=https://e:2379 --etcd-cafile=e --tls-cert-file=c --tls-private-key-file=k \
                   --client-ca-file=a --service-account-signing-key-file=s --proxy-client-cert-file=p \
                   --proxy-client-key-file=q";

#[test]
fn an_authority_of_its_own_is_made_only_where_something_is_missing() {
    let administrator = |line: &str| decided(&words(line)).map(|config| config.administrator);
    assert_eq!(administrator(ALL).expect("decided"), Administrator::None);
    for missing in ["--client-ca-file=a", "--service-account-signing-key-file=s"] {
        assert_eq!(
            administrator(&ALL.replace(missing, "")).expect("decided"),
            Administrator::Made,
            "{missing}"
        );
    }
    for more in ["--data-dir=d", "--cert-dir=d"] {
        assert_eq!(administrator(&format!("{ALL} {more}")).expect("decided"), Administrator::Made, "{more}");
    }
}

#[test]
fn a_family_is_listened_on_that_is_advertised() {
    for (more, want) in [
        ("--advertise-address=10.0.0.1", "0.0.0.0:6443"),
        ("--advertise-address=fd00::1", "[::]:6443"),
        ("--advertise-address=fd00::1 --bind-address=127.0.0.1 --secure-port=1", "127.0.0.1:1"),
        ("", "0.0.0.0:6443"),
    ] {
        let config = decided(&words(&format!("{ALL} {more}"))).expect("decided");
        assert_eq!(config.listen().to_string(), want, "{more}");
    }
}

#[test]
fn what_a_cluster_cannot_do_without_is_said() {
    for (line, want) in [
        (
            "--tls-cert-file=c --tls-private-key-file=k",
            "--etcd-servers is to say where objects are kept, or --data-dir, under the name kube-apiserver",
        ),
        (
            &format!("{ALL} --controllers=*"),
            "--controllers with certificatesigningrequest-signing-controller needs --data-dir, where the \
             authority is kept that it signs with",
        ),
    ] {
        let error = decided(&words(line)).expect_err(want);
        assert_eq!((error.line(), error.exit_code()), (want.to_owned(), 1), "{line}");
    }
    let kept = decided(&words("--tls-cert-file=c --tls-private-key-file=k --data-dir=d")).expect("decided");
    assert_eq!((kept.data_dir, kept.etcd.is_none()), (PathBuf::from("d"), true));
}
