//! The real kubeadm with our server where its manifest says `kube-apiserver`: what `kubeadm init` and
//! `kubeadm join` ask of an API server, phase by phase.
//!
//! In: the peers, built. Out: a control plane of kubeadm's making, what it keeps in it, and a node that
//! joins with a token. Never: a kubelet, whose requests the test makes itself; kube-scheduler and pods.

use std::fs;
use std::time::Duration;

use forebay_clients::kubeadm::{Kubeadm, Probe, TOKEN};
use forebay_clients::needs;
use forebay_clients::wait::until;
use serde_json::{Value, json};

/// What comes of controllers. Generous, as machines that build are busy.
const WAIT: Duration = Duration::from_secs(120);

/// A person at the first node.
struct Admin<'a>(&'a Kubeadm);

impl Admin<'_> {
    fn kubeadm(&self, line: &str) -> String {
        self.0.run(line).unwrap_or_else(|why| panic!("{why}\n{}", self.0.log_end()))
    }

    /// A phase of `kubeadm init`.
    fn phase(&self, line: &str) -> String {
        let kubeconfig = self.0.dir().join("super-admin.conf");
        self.kubeadm(&format!("init phase {line} --config init.yaml --kubeconfig {}", kubeconfig.display()))
    }

    fn object(&self, kubeconfig: &str, what: &[&str]) -> Value {
        let text = self.0.kubectl(kubeconfig, &[&["get", "-o", "json"], what].concat());
        serde_json::from_str(&text.unwrap_or_else(|why| panic!("{why}"))).expect("JSON")
    }

    /// Makes an object as `kubeconfig` says.
    fn create(&self, kubeconfig: &str, object: &Value) -> Result<String, String> {
        let file = self.0.dir().join("object.json");
        fs::write(&file, object.to_string()).expect("written");
        self.0.kubectl(kubeconfig, &["create", "-f", &file.display().to_string()])
    }
}

/// As a kubelet registers it.
fn node(name: &str) -> Value {
    let labels =
        json!({ "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" });
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels } })
}

#[test]
fn kubeadm_sets_up_a_control_plane_on_it_and_a_node_joins_by_token() {
    let Some(peers) = needs::built_peers() else { return };
    let cluster = Kubeadm::start(peers).unwrap_or_else(|why| panic!("{why}"));
    let admin = Admin(&cluster);
    its_probes_are_answered(&cluster);
    what_init_keeps_in_the_cluster_is_taken(&admin);
    tokens_are_made_listed_and_taken_away(&admin);
    a_node_joins(&admin);
}

fn its_probes_are_answered(cluster: &Kubeadm) {
    let (address, port) = cluster.endpoint().rsplit_once(':').expect("a port");
    for (name, path) in
        [("livenessProbe", "/livez"), ("readinessProbe", "/readyz"), ("startupProbe", "/livez")]
    {
        let probe = cluster.probe(name).expect("it is there");
        let want = Probe {
            host: address.to_owned(),
            path: path.to_owned(),
            port: "probe-port".to_owned(),
            scheme: "HTTPS".to_owned(),
        };
        assert_eq!(probe, want, "{name}");
        let said = cluster.anonymous(&format!("https://{address}:{port}"), path);
        assert_eq!(said.as_deref(), Ok("ok"), "{name}");
    }
    // Nothing of its own is made or written where everything is given.
    assert!(!cluster.dir().join("forebay-data").exists());
    let published = cluster.kubectl(
        "super-admin.conf",
        &[
            "get",
            "-n",
            "kube-system",
            "configmap",
            "extension-apiserver-authentication",
            "-o",
            "jsonpath={.data.client-ca-file}",
        ],
    );
    let authority = fs::read_to_string(cluster.dir().join("pki/ca.crt")).expect("kubeadm's authority");
    assert_eq!(published.expect("published").trim(), authority.trim());
}

fn what_init_keeps_in_the_cluster_is_taken(admin: &Admin<'_>) {
    // The kubelet of the first node has its kubeconfig of kubeadm.
    admin.create("kubelet.conf", &node("node-1")).unwrap_or_else(|why| panic!("{why}"));
    for phase in ["upload-config all", "bootstrap-token", "addon all"] {
        admin.phase(phase);
    }
    let dns = admin.object("super-admin.conf", &["-n", "kube-system", "service", "kube-dns"]);
    assert_eq!(dns["spec"]["clusterIP"], "10.96.0.10");
    let certs = admin.kubeadm(&format!(
        "init phase upload-certs --upload-certs --config init.yaml --kubeconfig {}",
        admin.0.dir().join("super-admin.conf").display()
    ));
    assert!(certs.contains("Using certificate key:"), "{certs}");
    let secret = admin.object("super-admin.conf", &["-n", "kube-system", "secret", "kubeadm-certs"]);
    assert_eq!(secret["data"].as_object().map(serde_json::Map::len), Some(8), "{secret}");
}

fn tokens_are_made_listed_and_taken_away(admin: &Admin<'_>) {
    let kubeconfig = format!("--kubeconfig {}", admin.0.dir().join("super-admin.conf").display());
    let made = admin.kubeadm(&format!("token create uvwxyz.0123456789abcdef --ttl 1h {kubeconfig}"));
    assert_eq!(made.trim(), "uvwxyz.0123456789abcdef");
    let listed = admin.kubeadm(&format!("token list {kubeconfig}"));
    assert!(listed.contains(TOKEN) && listed.contains(made.trim()), "{listed}");
    let is_signed = |id: &str| {
        let info = admin.object("super-admin.conf", &["-n", "kube-public", "configmap", "cluster-info"]);
        info["data"][format!("jws-kubeconfig-{id}")].is_string()
    };
    let wait_for = |id: &str, want: bool| {
        let waited = until(&format!("{id} signed: {want}"), WAIT, || match is_signed(id) == want {
            true => Ok(()),
            false => Err("not yet".to_owned()),
        });
        waited.unwrap_or_else(|why| panic!("{why}\n{}", admin.0.log_end()));
    };
    wait_for("uvwxyz", true);
    admin.kubeadm(&format!("token delete uvwxyz {kubeconfig}"));
    wait_for("uvwxyz", false);
    wait_for("abcdef", true);
}

fn a_node_joins(admin: &Admin<'_>) {
    let dir = admin.0.dir();
    let kubeconfig = format!("--kubeconfig {}", dir.join("super-admin.conf").display());
    let joins = admin.kubeadm(&format!("token create --print-join-command {kubeconfig}"));
    let hash =
        joins.split_whitespace().find(|word| word.starts_with("sha256:")).expect("the authority's hash");
    let config = format!(
        "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n\
         caCertPath: {}\n\
         discovery: {{bootstrapToken: {{token: {TOKEN}, apiServerEndpoint: \"{}\", caCertHashes: [\"{hash}\"]}}}}\n\
         nodeRegistration: {{name: node-2, criSocket: \"unix:///run/none.sock\"}}\n",
        dir.join("joining/ca.crt").display(),
        admin.0.endpoint(),
    );
    fs::write(dir.join("join.yaml"), config).expect("written");
    // Finds the cluster by its signature and the authority by its hash, and reads its configuration by the
    // token.
    admin.kubeadm("join phase kubelet-start --config join.yaml --dry-run");

    // From here on a kubelet, which has the kubeconfig of the token.
    let bootstrap = "joining/bootstrap-kubelet.conf";
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut parameters = rcgen::CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::OrganizationName, "system:nodes");
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "system:node:node-2");
    let request = parameters.serialize_request(&key).and_then(|request| request.pem()).expect("a request");
    let asked = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": { "name": "node-csr-2" },
        "spec": {
            "request": base64(request.as_bytes()), "usages": ["digital signature", "client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        },
    });
    admin.create(bootstrap, &asked).unwrap_or_else(|why| panic!("{why}"));
    let certificate = until("the certificate is signed", WAIT, || {
        let of = ["get", "csr", "node-csr-2", "-o", "jsonpath={.status.certificate}"];
        admin.0.kubectl(bootstrap, &of).and_then(|signed| match signed.is_empty() {
            true => Err("not yet".to_owned()),
            false => Ok(signed),
        })
    });
    let certificate = certificate.unwrap_or_else(|why| panic!("{why}\n{}", admin.0.log_end()));
    let mut kubelet: Value = {
        let text =
            admin.0.kubectl(bootstrap, &["config", "view", "--raw", "-o", "json"]).expect("a kubeconfig");
        serde_json::from_str(&text).expect("JSON")
    };
    kubelet["users"][0]["user"] = json!({ "client-certificate-data": certificate, "client-key-data": base64(key.serialize_pem().as_bytes()) });
    fs::write(dir.join("node-2.conf"), kubelet.to_string()).expect("written");

    let who = admin.0.kubectl("node-2.conf", &["auth", "whoami", "-o", "json"]).expect("it is known");
    let who: Value = serde_json::from_str(&who).expect("JSON");
    assert_eq!(who["status"]["userInfo"]["username"], "system:node:node-2", "{who}");
    admin.create("node-2.conf", &node("node-2")).unwrap_or_else(|why| panic!("{why}"));
    admin.object("node-2.conf", &["-n", "kube-system", "configmap", "kubeadm-config"]);
    for (arguments, want) in [
        (
            &["label", "node", "node-1", "a=b"][..],
            "node 'node-2' cannot read 'node-1', only its own Node object",
        ),
        (&["get", "secrets", "-n", "kube-system"][..], "cannot list resource \"secrets\""),
        (
            &["label", "node", "node-2", "node-role.kubernetes.io/control-plane="][..],
            "is not allowed to modify labels",
        ),
    ] {
        let refused = admin.0.kubectl("node-2.conf", arguments).expect_err("a node may not do that");
        assert!(refused.contains(want), "{refused}");
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
