//! What the operators' tests share: a program with its sources, a server, definitions, webhooks.

mod cert_manager;
mod cluster_api;
mod dex;
mod gatekeeper;
mod kueue;
mod prometheus_operator;

use std::path::PathBuf;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_clients::{ControlPlane, Session, pki, ports};
use serde_json::{Value, json};

/// An operator's program and its sources.
struct Operator {
    name: &'static str,
    home: PathBuf,
}

impl Operator {
    /// `None`: nobody asks for it.
    fn asked(name: &'static str) -> Option<Operator> {
        let home = PathBuf::from(std::env::var_os("FOREBAY_OPERATORS")?);
        home.join(name).exists().then_some(Operator { name, home })
    }

    fn command(&self) -> Command {
        Command::new(self.home.join(self.name))
    }

    /// Has it run beside the server, for as long as that does.
    fn start(&self, server: &mut ControlPlane, command: &mut Command) {
        server.start_beside(self.name, command).unwrap_or_else(|why| panic!("{why}"));
    }

    fn still_runs(&self, server: &mut ControlPlane) {
        server.beside_alive().unwrap_or_else(|why| panic!("{}: {why}", self.name));
    }

    /// A path of its sources.
    fn source(&self, path: &str) -> String {
        self.home.join(format!("{}.source", self.name)).join(path).display().to_string()
    }

    /// Creates the definitions of a directory of its sources, and waits until all are served.
    fn define<'a>(&self, server: &'a ControlPlane, namespace: &str, dir: &str) -> Option<Session<'a>> {
        let kubectl = Session::new(server, namespace)?;
        // Some are too long for what kubectl apply notes of an object.
        kubectl.run(&format!("kubectl create -f {}", self.source(dir)));
        kubectl.run("kubectl wait --for=condition=Established --timeout=60s crd --all");
        Some(kubectl)
    }

    /// Gives its account the rights that its manifests give it. Returns the account's kubeconfig.
    ///
    /// - `manifests`: where they are among others, as flags of `kubectl create`.
    fn account(&self, kubectl: &Session<'_>, manifests: &str, namespace: &str, name: &str) -> PathBuf {
        let kinds = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
        let mut all = shown(kubectl, manifests);
        all.retain(|one| one["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)));
        create(kubectl, "account.json", all);
        self.kubeconfig(kubectl, namespace, name)
    }

    /// The kubeconfig of a service account.
    fn kubeconfig(&self, kubectl: &Session<'_>, namespace: &str, account: &str) -> PathBuf {
        let path = kubectl.server.dir().join(format!("{}.kubeconfig", self.name));
        let config = format!("kubectl --kubeconfig={} config", path.display());
        kubectl.run(&format!(
            "set -e; cp $KUBECONFIG {}
             {config} set-credentials {account} --token=$(kubectl create token {account} -n {namespace})
             {config} set-context --current --user={account} --namespace={namespace}",
            path.display()
        ));
        path
    }

    fn saw(&self, what: &str) {
        println!("{}: {what}", self.name);
    }
}

/// A server with the controllers that a lone one has.
fn server() -> ControlPlane {
    let flags = vec!["--controllers=*".to_owned(), "--authorization-mode=RBAC".to_owned()];
    ControlPlane::start_told(flags).unwrap_or_else(|why| panic!("{why}"))
}

/// Where an operator on this machine answers for what its manifests have behind a Service.
struct Webhook {
    port: u16,
    /// In base64.
    authority: String,
}

impl Webhook {
    /// Leaves `tls.crt` and `tls.key` in the server's directory.
    fn new(server: &ControlPlane) -> Webhook {
        let certificate = pki::write_webhook(server.dir()).unwrap_or_else(|why| panic!("{why}"));
        let [port] = ports::free().unwrap_or_else(|why| panic!("{why}"));
        Webhook { port, authority: STANDARD.encode(certificate) }
    }

    fn client(&self, path: &str) -> Value {
        json!({ "url": format!("https://localhost:{}{path}", self.port), "caBundle": self.authority })
    }

    /// Has definitions converted by it.
    fn converts(&self, kubectl: &Session<'_>, definitions: &[&str]) {
        let webhook = json!({ "conversionReviewVersions": ["v1"], "clientConfig": self.client("/convert") });
        let patch = json!({ "spec": { "conversion": { "strategy": "Webhook", "webhook": webhook } } });
        for name in definitions {
            kubectl.run(&format!("kubectl patch crd {name} --type=merge -p '{patch}'"));
        }
    }

    /// Creates the configurations of webhooks among manifests, with those webhooks whose path is wanted.
    fn create(&self, kubectl: &Session<'_>, manifests: &str, is_wanted: impl Fn(&str) -> bool) {
        let mut all = shown(kubectl, manifests);
        all.retain(|one| one["webhooks"].is_array());
        for hooks in all.iter_mut().filter_map(|one| one["webhooks"].as_array_mut()) {
            let path =
                |hook: &Value| hook["clientConfig"]["service"]["path"].as_str().unwrap_or("/").to_owned();
            hooks.retain(|hook| is_wanted(&path(hook)));
            for hook in hooks {
                hook["clientConfig"] = self.client(&path(hook));
            }
        }
        create(kubectl, "webhooks.json", all);
    }
}

/// The manifests that flags of `kubectl create` lead to.
fn shown(kubectl: &Session<'_>, manifests: &str) -> Vec<Value> {
    let text = kubectl.run(&format!("kubectl create --dry-run=client -o json {manifests}"));
    let read = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    // One behind the other, or in a list.
    let each = read.flat_map(|one| match one.unwrap_or_else(|why| panic!("{why}: {text}")) {
        Value::Object(mut list) if list.contains_key("items") => {
            list["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
        }
        one => vec![one],
    });
    each.collect()
}

fn create(kubectl: &Session<'_>, name: &str, all: Vec<Value>) {
    kubectl.file(name, &json!({ "apiVersion": "v1", "kind": "List", "items": all }).to_string());
    kubectl.run(&format!("kubectl create -f {name}"));
}
