//! The binary under the names that envtest of controller-runtime starts, with the arguments that it gives.
//!
//! In: links to the binary, certificates as envtest makes them. Never: controller-runtime itself, which needs
//! Go and is in the crate `clients`.

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use common::{Client, Identity, Protocol, Scratch, Server, WAIT, names};
use forebay_pki::{self as pki, Pki, ServingNames};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// A process under another name than its own, and what it says.
struct Named {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    log: PathBuf,
}

impl Named {
    fn start(scratch: &Scratch, command: &mut Command) -> Named {
        let log = scratch.new_path("stderr");
        let mut child = command
            .env_clear()
            // A test's own, or that of another server: not for this one.
            .env("FOREBAY_DATA_DIR", scratch.path().join("shared"))
            .env("FOREBAY_NO_SUCH", "flag")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log).expect("a log"))
            .kill_on_drop(true)
            .spawn()
            .expect("the binary");
        let stdout = child.stdout.take().expect("its stdout");
        Named { child, lines: BufReader::new(stdout).lines(), log }
    }

    /// The port that it says that it listens on.
    async fn port(&mut self) -> u16 {
        let line = timeout(WAIT, self.lines.next_line()).await.expect("no word from it").expect("its stdout");
        let line = line.unwrap_or_else(|| panic!("it ended: {}", self.stderr()));
        let (_, rest) = line.split_once("://127.0.0.1:").unwrap_or_else(|| panic!("no address: {line}"));
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
        digits.unwrap_or_else(|| panic!("no port: {line}"))
    }

    /// Waits until nobody holds its stdout any more, neither itself nor a child.
    async fn silent(&mut self) {
        while timeout(WAIT, self.lines.next_line())
            .await
            .expect("it does not end")
            .expect("its stdout")
            .is_some()
        {}
    }

    fn stderr(&self) -> String {
        fs::read_to_string(&self.log).expect("its stderr")
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).expect("a process");
        kill_process(pid, signal).expect("a signal");
    }
}

fn link(scratch: &Scratch, name: &str) -> PathBuf {
    let path = scratch.path().join(name);
    if !path.exists() {
        symlink(env!("CARGO_BIN_EXE_forebay"), &path).expect("a link");
    }
    path
}

/// What envtest writes into the directory before it starts the server.
fn certificates(dir: &Path) -> Pki {
    let names = ServingNames { dns: vec!["localhost".to_owned()], ips: vec![[127, 0, 0, 1].into()] };
    let made = pki::in_memory(&names, jiff::Timestamp::now()).expect("made");
    fs::create_dir_all(dir).expect("made");
    for (name, text) in [
        ("apiserver.crt", &made.serving.cert),
        ("apiserver.key", &made.serving.key),
        ("client-cert-auth-ca.crt", &made.ca_cert),
        ("sa-signer.crt", &made.ca_cert),
        ("sa-signer.key", &made.service_account_key.0),
    ] {
        fs::write(dir.join(name), text).expect("written");
    }
    made
}

/// The arguments that envtest gives, but for the port, which it draws itself.
fn arguments(dir: &Path) -> Vec<String> {
    let file = |name: &str| dir.join(name).display().to_string();
    vec![
        "--allow-privileged=true".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--cert-dir={}", dir.display()),
        format!("--client-ca-file={}", file("client-cert-auth-ca.crt")),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--etcd-servers=http://127.0.0.1:1".to_owned(),
        "--secure-port=0".to_owned(),
        "--service-account-issuer=https://127.0.0.1:1/".to_owned(),
        format!("--service-account-key-file={}", file("sa-signer.crt")),
        format!("--service-account-signing-key-file={}", file("sa-signer.key")),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
    ]
}

/// The directories of data below that of the certificates.
fn data_dirs(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("listed").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.is_dir()).collect()
}

#[tokio::test]
async fn under_the_name_of_kube_apiserver_it_takes_the_arguments_of_envtest() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("k8s_test_framework_1");
    let made = certificates(&dir);
    let program = link(&scratch, "kube-apiserver");
    let mut server = Named::start(&scratch, Command::new(&program).args(arguments(&dir)));
    let port = server.port().await;

    let nobody = Client::connect(port, &made.ca_cert, Protocol::Http1, Identity::Nobody).await;
    // The certificate is the given one: its authority is the only one that this client trusts.
    assert_eq!(nobody.expect("a connection").get("/healthz").await.text(), "ok");
    let admin = Identity::Certificate { chain: &made.admin.cert, key: &made.admin.key };
    let admin = Client::connect(port, &made.ca_cert, Protocol::Http2, admin).await.expect("a connection");
    let namespaces = admin.get("/api/v1/namespaces").await.expect(200);
    assert!(names(&namespaces).contains(&"default".to_owned()), "{namespaces}");

    let dirs = data_dirs(&dir);
    let [data_dir] = dirs.as_slice() else { panic!("{dirs:?}") };
    let warning = format!(
        "--etcd-servers is not used: envtest's etcd stores nothing, and data is in {}\n",
        data_dir.display()
    );
    assert!(server.stderr().contains(&warning), "{}", server.stderr());
    assert!(!server.stderr().contains("FOREBAY_"), "{}", server.stderr());
    assert!(!scratch.path().join("shared").exists());

    server.signal(Signal::TERM);
    let ended = timeout(WAIT, server.child.wait()).await.expect("it does not end").expect("its end");
    assert!(ended.success(), "{ended}: {}", server.stderr());
    assert!(data_dir.is_dir(), "whoever stopped it may want to see what it had");
}

#[tokio::test]
async fn many_share_no_path() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("certs");
    certificates(&dir);
    let program = link(&scratch, "kube-apiserver");
    let mut servers: Vec<_> =
        (0..5).map(|_| Named::start(&scratch, Command::new(&program).args(arguments(&dir)))).collect();
    let mut ports = Vec::new();
    for server in &mut servers {
        ports.push(server.port().await);
    }
    ports.sort_unstable();
    ports.dedup();
    assert_eq!((ports.len(), data_dirs(&dir).len()), (5, 5));
}

#[tokio::test]
async fn nothing_is_left_when_the_parent_is_killed() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("certs");
    certificates(&dir);
    let rows = [
        ("kube-apiserver", arguments(&dir)),
        ("etcd", vec!["--listen-client-urls=http://127.0.0.1:0".to_owned()]),
    ];
    for (name, arguments) in rows {
        // The shell waits for the server, as a test does.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "\"$0\" \"$@\" & wait"]).arg(link(&scratch, name)).args(arguments);
        let mut shell = Named::start(&scratch, &mut shell);
        let port = shell.port().await;
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_ok(), "{name}");
        shell.signal(Signal::KILL);
        shell.silent().await;
        assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "{name}");
        assert_eq!(data_dirs(&dir), Vec::<PathBuf>::new(), "{name}");
    }
}

#[tokio::test]
async fn what_does_not_start_leaves_no_directory() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("certs");
    certificates(&dir);
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = format!("--secure-port={}", port.local_addr().expect("its address").port());
    for (more, code, want) in [
        ("--no-such-flag", 2, "error: unknown flag: --no-such-flag"),
        ("--etcd-servers-overrides=x", 1, "error: --etcd-servers-overrides is not served yet"),
        ("--client-ca-file=/no/such/file", 1, "error: read /no/such/file: "),
        (&taken, 1, "error: cannot listen on 127.0.0.1:"),
    ] {
        let program = link(&scratch, "kube-apiserver");
        let mut server = Named::start(&scratch, Command::new(program).args(arguments(&dir)).arg(more));
        let ended = timeout(WAIT, server.child.wait()).await.expect("it does not end").expect("its end");
        assert_eq!(ended.code(), Some(code), "{more}: {}", server.stderr());
        assert!(server.stderr().lines().any(|line| line.starts_with(want)), "{more}: {}", server.stderr());
        assert_eq!(data_dirs(&dir), Vec::<PathBuf>::new(), "{more}");
    }
}

#[tokio::test]
async fn envtest_asks_for_flags_and_version() {
    let scratch = Scratch::new();
    let said = async |name: &str, argument: &str| {
        let mut command = Command::new(link(&scratch, name));
        let done = timeout(WAIT, command.arg(argument).output()).await.expect("it does not end");
        let done = done.expect("its end");
        assert!(done.status.success(), "{name} {argument}: {}", done.status);
        String::from_utf8(done.stdout).expect("text")
    };
    let help = said("kube-apiserver", "--help").await;
    // envtest looks for flags at the beginning of lines.
    let has = |help: &str, flag: &str| help.lines().any(|line| line.trim_start().starts_with(flag));
    assert!(has(&help, "--secure-port") && !has(&help, "--insecure-port"), "{help}");
    assert!(has(&said("etcd", "--help").await, "--listen-client-urls"));
    assert_eq!(said("kube-apiserver", "--version").await, "Kubernetes v1.36.3\n");
    assert!(said("etcd", "--version").await.starts_with("no etcd: forebay "));
}

#[tokio::test]
async fn under_the_name_of_etcd_it_answers_for_its_health_and_stores_nothing() {
    let scratch = Scratch::new();
    let data_dir = scratch.path().join("etcd-data");
    let mut command = Command::new(link(&scratch, "etcd"));
    command.args(["--listen-client-urls=http://127.0.0.1:0", "--listen-peer-urls=http://127.0.0.1:0"]);
    command.arg(format!("--data-dir={}", data_dir.display()));
    let mut etcd = Named::start(&scratch, &mut command);
    let port = etcd.port().await;
    for (path, want) in [("/health", "HTTP/1.1 200 OK"), ("/v3/kv/range", "HTTP/1.1 501 Not Implemented")] {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
        let ask = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        stream.write_all(ask.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        timeout(WAIT, stream.read_to_string(&mut answer)).await.expect("in time").expect("an answer");
        assert!(answer.starts_with(want), "{path}: {answer}");
    }
    assert!(etcd.stderr().starts_with("This is not etcd but forebay "), "{}", etcd.stderr());
    assert!(!data_dir.exists());
    etcd.signal(Signal::TERM);
    let ended = timeout(WAIT, etcd.child.wait()).await.expect("it does not end").expect("its end");
    assert!(ended.success(), "{ended}");
}

#[tokio::test]
async fn under_its_own_name_it_keeps_objects_in_the_etcd_that_it_is_told() {
    let scratch = Scratch::new();
    // Nobody listens there.
    let failed = Server::try_start(&scratch, &["--etcd-servers=http://127.0.0.1:1"]).await;
    let failed = failed.err().expect("no start without a store");
    assert_eq!(failed.code, Some(1));
    assert!(failed.stderr.contains("etcd cannot be reached: http://127.0.0.1:1"), "{}", failed.stderr);
}
