//! The kubeconfig of the administrator: one cluster, one user, one context, everything embedded.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::Error;
use forebay_pki::KeyPairPem;
use forebay_pki::private_files::{self, Readers};

/// What a client needs.
#[derive(Debug, Clone)]
pub struct Kubeconfig<'a> {
    /// `https://127.0.0.1:6443`
    pub server: String,
    /// The certificates to trust, PEM.
    pub authority: &'a str,
    /// The name in the server's certificate, where it is not that of `server`.
    pub tls_server_name: Option<&'a str>,
    pub client: &'a KeyPairPem,
}

const NAME: &str = "forebay";
const USER: &str = "kubernetes-admin";

impl Kubeconfig<'_> {
    /// Writes the file in one step, for its owner alone, unless it says the same already.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let text = self.to_yaml();
        if private_files::read_if_there(path).is_ok_and(|there| there.as_deref() == Some(&text)) {
            return Ok(());
        }
        private_files::write(path, text.as_bytes(), Readers::Owner)?;
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(private_files::sync_dir(dir)?)
    }

    /// In the order in which kubectl writes it.
    pub fn to_yaml(&self) -> String {
        // Quoted as JSON, which YAML reads the same.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let data = |pem: &str| STANDARD.encode(pem);
        let server_name = self
            .tls_server_name
            .map_or_else(String::new, |name| format!("    tls-server-name: {}\n", quoted(name)));
        format!(
            "apiVersion: v1\n\
             clusters:\n\
             - cluster:\n    \
                 certificate-authority-data: {authority}\n    \
                 server: {server}\n{server_name}  \
               name: {NAME}\n\
             contexts:\n\
             - context:\n    \
                 cluster: {NAME}\n    \
                 user: {USER}\n  \
               name: {NAME}\n\
             current-context: {NAME}\n\
             kind: Config\n\
             users:\n\
             - name: {USER}\n  \
               user:\n    \
                 client-certificate-data: {cert}\n    \
                 client-key-data: {key}\n",
            authority = data(self.authority),
            server = quoted(&self.server),
            cert = data(&self.client.cert),
            key = data(&self.client.key),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use expect_test::expect;

    use super::*;
    use forebay_scratch::Scratch;

    fn pair() -> KeyPairPem {
        KeyPairPem { cert: "CERT\n".to_owned(), key: "KEY\n".to_owned() }
    }

    #[test]
    fn it_reads_back_as_what_kubectl_needs() {
        let client = pair();
        let config = Kubeconfig {
            server: "https://[::1]:6443".to_owned(),
            authority: "CA\n",
            tls_server_name: Some("api.example.org"),
            client: &client,
        };
        expect![[r#"
            apiVersion: v1
            clusters:
            - cluster:
                certificate-authority-data: Q0EK
                server: "https://[::1]:6443"
                tls-server-name: "api.example.org"
              name: forebay
            contexts:
            - context:
                cluster: forebay
                user: kubernetes-admin
              name: forebay
            current-context: forebay
            kind: Config
            users:
            - name: kubernetes-admin
              user:
                client-certificate-data: Q0VSVAo=
                client-key-data: S0VZCg==
        "#]]
        .assert_eq(&config.to_yaml());
        let read: serde_json::Value = serde_saphyr::from_str(&config.to_yaml()).expect("YAML");
        assert_eq!(read["clusters"][0]["cluster"]["server"], "https://[::1]:6443");
        assert_eq!(read["contexts"][0]["context"]["user"], read["users"][0]["name"]);
        assert_eq!(read["current-context"], read["contexts"][0]["name"]);
        assert_eq!(
            STANDARD.decode(read["users"][0]["user"]["client-key-data"].as_str().expect("text")),
            Ok(b"KEY\n".to_vec())
        );
    }

    #[test]
    fn it_is_written_for_its_owner_and_only_when_it_changes() {
        let scratch = Scratch::new();
        let path = scratch.path().join("admin.kubeconfig");
        let client = pair();
        let write = |server: &str| {
            Kubeconfig { server: server.to_owned(), authority: "CA", tls_server_name: None, client: &client }
                .write(&path)
                .expect("written");
            fs::metadata(&path).expect("there")
        };
        let first = write("https://127.0.0.1:1");
        assert_eq!(first.permissions().mode() & 0o777, 0o600);
        assert_eq!(write("https://127.0.0.1:1").ino(), first.ino());
        write("https://127.0.0.1:2");
        let text = fs::read_to_string(&path).expect("read");
        assert!(
            text.contains("server: \"https://127.0.0.1:2\"") && !text.contains("tls-server-name"),
            "{text}"
        );
    }
}
