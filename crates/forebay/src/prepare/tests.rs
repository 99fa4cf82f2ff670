//! From flags to files, and what is said of those that are not as they should be.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::*;
use crate::config::Host;
use crate::flags::argv;
use crate::flags::layers::Raw;
use forebay_scratch::Scratch;

fn prepare(dir: &Path, more: &[String]) -> Result<(Prepared, Vec<String>), Error> {
    let data_dir = format!("--data-dir={}", dir.join("data").display());
    let arguments = [data_dir].into_iter().chain(more.iter().cloned()).map(OsString::from);
    let raw = Raw::collect(argv::parse(arguments)?.flags, std::iter::empty())?;
    let mut warnings = Vec::new();
    let config = ServeConfig::decide(&raw, &Host::default())?;
    let now = Timestamp::from_second(1_800_000_000).expect("a time");
    Ok((Prepared::new(config, now, &mut warnings)?, warnings))
}

fn write_kubeconfig(prepared: &Prepared, port: u16) -> Result<(), Error> {
    let path = prepared.config.admin_kubeconfig().expect("an administrator is made");
    prepared.admin_kubeconfig(port).write(&path)
}

/// Of the keys that verify.
fn ids(prepared: &Prepared) -> Vec<&str> {
    prepared.token_keys.verifying.iter().map(|key| key.id.as_str()).collect()
}

fn kubeconfig(dir: &Path) -> serde_json::Value {
    let text = fs::read_to_string(dir.join("data/admin.kubeconfig")).expect("written");
    serde_saphyr::from_str(&text).expect("YAML")
}

#[test]
fn an_empty_directory_gets_everything_below_the_data_directory() {
    let scratch = Scratch::new();
    let (prepared, warnings) = prepare(scratch.path(), &[]).expect("prepared");
    write_kubeconfig(&prepared, 4711).expect("written");
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(kubeconfig(scratch.path())["clusters"][0]["cluster"]["server"], "https://127.0.0.1:4711");
    let mut names: Vec<_> = fs::read_dir(scratch.path().join("data/pki"))
        .expect("listed")
        .map(|entry| entry.expect("entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "admin.crt",
            "admin.key",
            "apiserver.crt",
            "apiserver.key",
            "ca.crt",
            "ca.key",
            "front-proxy",
            "sa.key"
        ]
    );
    assert_eq!(fs::read_dir(scratch.path()).expect("listed").count(), 1);
    assert_eq!(ids(&prepared), [prepared.token_keys.signing.public.id.as_str()]);
}

#[test]
fn in_memory_the_same_is_made_and_nothing_is_written() {
    let scratch = Scratch::new();
    let raw = Raw::collect(argv::parse(std::iter::empty()).expect("parsed").flags, std::iter::empty());
    let mut config = ServeConfig::decide(&raw.expect("collected"), &Host::default()).expect("decided");
    config.data_dir = scratch.path().join("data");
    config.tls.cert_dir = config.data_dir.join("pki");
    let now = Timestamp::from_second(1_800_000_000).expect("a time");
    let prepared = Prepared::in_memory(config, now, &mut Vec::new()).expect("prepared");
    assert_eq!(fs::read_dir(scratch.path()).expect("listed").count(), 0);
    let config: serde_json::Value =
        serde_saphyr::from_str(&prepared.admin_kubeconfig(4711).to_yaml()).expect("YAML");
    assert_eq!(config["clusters"][0]["cluster"]["server"], "https://127.0.0.1:4711");
    assert!(prepared.client_ca.starts_with("-----BEGIN CERTIFICATE-----"));
}

#[test]
fn given_secrets_that_others_can_read_are_warned_about() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new();
    let other = prepare(&scratch.path().join("other"), &[]).map(drop);
    other.expect("prepared");
    let file = |name: &str| scratch.path().join("other/data/pki").join(name);
    let tokens = scratch.path().join("tokens");
    fs::write(&tokens, "t,u,1\n").expect("written");
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode set");
    };
    let flags = [
        format!("--tls-cert-file={}", file("apiserver.crt").display()),
        format!("--tls-private-key-file={}", file("apiserver.key").display()),
        format!("--token-auth-file={}", tokens.display()),
        format!("--service-account-key-file={}", file("sa.key").display()),
        format!("--service-account-key-file={}", file("ca.crt").display()),
        format!("--service-account-signing-key-file={}", file("admin.key").display()),
    ];
    let secrets = [file("apiserver.key"), tokens, file("admin.key"), file("sa.key")];
    let mut want = Vec::new();
    for (secret, mode) in secrets.iter().zip([0o644, 0o640, 0o604, 0o440]) {
        set(secret, mode);
        let shown = secret.display();
        want.push(format!(
            "{shown} is open to other users of this machine (mode {mode:04o}); chmod 600 closes it"
        ));
    }
    let (_, warnings) = prepare(scratch.path(), &flags).expect("theirs to decide");
    assert_eq!(warnings, want);
    secrets.iter().for_each(|secret| set(secret, 0o600));
    let (_, warnings) = prepare(scratch.path(), &flags).expect("prepared");
    assert_eq!(warnings, Vec::<String>::new());
    // What was made here is not.
    for name in ["ca.key", "apiserver.key", "admin.key", "sa.key"] {
        let made = scratch.path().join("data/pki").join(name);
        set(&made, 0o640);
        let error = prepare(scratch.path(), &[]).expect_err("others may have it");
        let why = "is open to other users of this machine (mode 0640); chmod 600 closes it";
        assert_eq!(error.line(), format!("{}: {why}", made.display()));
        set(&made, 0o600);
    }
}

#[test]
fn an_authority_that_is_not_in_its_time_is_warned_about() {
    let scratch = Scratch::new();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, "old");
    params.not_before = rcgen::date_time_ymd(2000, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let key = rcgen::KeyPair::generate().expect("a key");
    let file = scratch.path().join("clients.crt");
    fs::write(&file, params.self_signed(&key).expect("signed").pem()).expect("written");
    let flag = format!("--client-ca-file={}", file.display());
    let (_, warnings) = prepare(scratch.path(), &[flag]).expect("prepared");
    assert_eq!(
        warnings,
        [format!(
            "authority CN=old in {} is valid from 2000-01-01T00:00:00Z to 2020-01-01T00:00:00Z only: it vouches for \
             nobody",
            file.display()
        )]
    );
}

#[test]
fn who_vouches_for_clients_and_for_proxies_has_to_say_which_are_proxies() {
    let scratch = Scratch::new();
    prepare(&scratch.path().join("other"), &[]).expect("prepared");
    let file = |name: &str| scratch.path().join("other/data/pki").join(name).display().to_string();
    let both = |clients: &str, proxies: &str| {
        [
            format!("--client-ca-file={}", file(clients)),
            format!("--requestheader-client-ca-file={}", file(proxies)),
        ]
    };
    let error = prepare(scratch.path(), &both("ca.crt", "ca.crt")).expect_err("anybody could be anybody");
    let why = "--requestheader-client-ca-file and --client-ca-file have an authority in common: without \
               --requestheader-allowed-names every client could act as anybody";
    assert_eq!(error.line(), why);
    let mut named = both("ca.crt", "ca.crt").to_vec();
    named.push("--requestheader-allowed-names=front".to_owned());
    prepare(scratch.path(), &named).expect("it says so");
    prepare(scratch.path(), &both("ca.crt", "front-proxy/ca.crt")).expect("they are others");
}

#[test]
fn a_missing_file_is_named_and_leaves_no_directory_behind() {
    for flag in
        ["token-auth-file", "client-ca-file", "service-account-key-file", "service-account-signing-key-file"]
    {
        let scratch = Scratch::new();
        let missing = scratch.path().join("missing");
        let error = prepare(scratch.path(), &[format!("--{flag}={}", missing.display())]).expect_err(flag);
        assert!(error.line().starts_with(&format!("read {}: ", missing.display())), "{}", error.line());
        assert_eq!(fs::read_dir(scratch.path()).expect("listed").count(), 0, "{flag}");
    }
}

#[test]
fn given_files_take_the_place_of_made_ones() {
    let scratch = Scratch::new();
    let other = prepare(&scratch.path().join("other"), &["--external-hostname=api.example.org".to_owned()]);
    let (other, _) = other.expect("prepared");
    let file = |name: &str| scratch.path().join("other/data/pki").join(name).display().to_string();
    fs::write(scratch.path().join("tokens"), "t,u,1,\"g,h\"\n").expect("written");
    let flags = [
        format!("--tls-cert-file={}", file("apiserver.crt")),
        format!("--tls-private-key-file={}", file("apiserver.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--token-auth-file={}", scratch.path().join("tokens").display()),
        format!("--service-account-key-file={}", file("sa.key")),
        "--bind-address=127.0.0.9".to_owned(),
    ];
    let (prepared, _) = prepare(scratch.path(), &flags).expect("prepared");
    write_kubeconfig(&prepared, 1).expect("written");
    assert_eq!(prepared.serving, other.serving);
    assert_eq!(prepared.token_users.len(), 1);
    assert!(
        prepared.client_ca.starts_with(&other.client_ca) && prepared.client_ca.len() > other.client_ca.len()
    );
    let signing = |prepared: &Prepared| prepared.token_keys.signing.public.id.clone();
    assert_eq!(ids(&prepared), [signing(&other), signing(&prepared)]);
    let cluster = &kubeconfig(scratch.path())["clusters"][0]["cluster"];
    assert_eq!(cluster["server"], "https://127.0.0.9:1");
    // The given certificate does not cover that address; the authority that signed it is known.
    assert_eq!(cluster["tls-server-name"], "localhost");
    use base64::Engine as _;
    let authority = base64::engine::general_purpose::STANDARD.encode(&other.client_ca);
    assert_eq!(cluster["certificate-authority-data"].as_str().map(str::len), Some(authority.len()));
}

#[test]
fn files_of_the_wrong_kind_are_named() {
    let scratch = Scratch::new();
    let (_, _) = prepare(&scratch.path().join("other"), &[]).expect("prepared");
    let file = |name: &str| scratch.path().join("other/data/pki").join(name).display().to_string();
    let rows = [
        (vec![("client-ca-file", "ca.key")], "ca.key: holds no certificate in PEM"),
        (vec![("service-account-signing-key-file", "ca.crt")], "ca.crt: not a private key in PEM"),
        (
            vec![("tls-cert-file", "apiserver.crt"), ("tls-private-key-file", "admin.key")],
            "admin.key: is not the private key of the certificate in",
        ),
        (
            vec![("tls-cert-file", "apiserver.key"), ("tls-private-key-file", "apiserver.key")],
            "apiserver.key: holds no certificate in PEM",
        ),
    ];
    for (flags, want) in rows {
        let flags: Vec<_> = flags.iter().map(|(flag, name)| format!("--{flag}={}", file(name))).collect();
        let error = prepare(scratch.path(), &flags).expect_err(want);
        assert!(error.line().contains(want), "{}", error.line());
        assert_eq!(error.exit_code(), 1);
    }
}

#[test]
fn what_is_spoken_to_etcd_with_is_read_again_when_its_files_were_renewed() {
    let scratch = Scratch::new();
    prepare(scratch.path(), &[]).expect("prepared");
    let (pki, at) = (scratch.path().join("data/pki"), |name: &str| scratch.path().join(name));
    let renew = |name: &str| {
        for (end, to) in [("crt", "client.crt"), ("key", "client.key")] {
            fs::copy(pki.join(format!("{name}.{end}")), at(to)).expect("copied");
        }
    };
    renew("admin");
    let config = EtcdConfig {
        endpoints: Vec::new(),
        ca_file: Some(pki.join("ca.crt")),
        client: Some(CertificateFiles { cert: at("client.crt"), key: at("client.key") }),
        compaction_interval: None,
    };
    let files = etcd_tls(&config).expect("read");
    let reread = files.reread.clone().expect("files may be renewed");
    assert_eq!(reread().expect("read").client, files.client);
    renew("apiserver");
    let renewed = reread().expect("read");
    assert!(renewed.ca == files.ca && renewed.client.is_some() && renewed.client != files.client);
    fs::remove_file(at("client.key")).expect("removed");
    let why = reread().expect_err("it is gone");
    assert!(why.starts_with(&format!("read {}: ", at("client.key").display())), "{why}");
}

#[test]
fn the_certificate_directory_may_be_elsewhere() {
    let scratch = Scratch::new();
    let certs = scratch.path().join("certs");
    prepare(scratch.path(), &[format!("--cert-dir={}", certs.display())]).expect("prepared");
    assert!(private_files::read_if_there(&certs.join("ca.crt")).expect("read").is_some());
    assert!(!scratch.path().join("data/pki").exists());
}
