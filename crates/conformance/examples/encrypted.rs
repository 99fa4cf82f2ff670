//! What encryption at rest costs, ours and kube-apiserver's, on an etcd of their own, with the same provider:
//! Secrets created in a second, and the time from a start until all of them were listed.
//!
//! In: the provider (`none`, `aesgcm`, `aescbc`, `secretbox` or `kms`), and how many Secrets, 20,000 unless
//! it is said. Out: a line for each server. `FOREBAY_TEST_BINARY` names a binary of ours that was built for
//! speed.

#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::fs;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_clients::ControlPlane;
use forebay_clients::etcd::{Cluster, Security};
use forebay_hook::kms::KmsPlugin;
use futures_util::StreamExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

const COUNT: usize = 20_000;
const AT_ONCE: usize = 32;
const PATH: &str = "/api/v1/namespaces/default/secrets";
/// What a Secret holds: 1.5 KB, as a certificate with its key.
const DATA_BYTES: usize = 1_100;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let provider = arguments.next().unwrap_or_else(|| "aesgcm".to_owned());
    let count = arguments.next().map_or(Ok(COUNT), |count| count.parse())?;
    for whose in ["ours", "theirs"] {
        let cluster = Cluster::start(1, Security::Plain)?;
        let plugin = KmsPlugin::start(&cluster.dir().join("kms.sock"), "key1");
        let flags = flags(&cluster, &provider, &plugin)?;
        let mut server = match whose {
            "ours" => ControlPlane::start_told(cluster.flags().into_iter().chain(flags).collect())?,
            _ => {
                let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
                ControlPlane::start_rival_told(&cluster, &flags)?
            }
        };
        let (client, began) = (client(&server).await?, Instant::now());
        let create = |number: usize| {
            let client = client.clone();
            async move { send(&client, "POST", PATH, Some(&secret(number))).await }
        };
        let mut created = futures_util::stream::iter((0..count).map(create)).buffer_unordered(AT_ONCE);
        while let Some(created) = created.next().await {
            created?;
        }
        let rate = count as f64 / began.elapsed().as_secs_f64();
        server.kill()?;
        let began = Instant::now();
        server.start_again()?;
        let client = self::client(&server).await?;
        let list = send(&client, "GET", PATH, None).await?;
        let listed = list["items"].as_array().map_or(0, Vec::len);
        let took = began.elapsed().as_secs_f64();
        println!(
            "figure: {provider} {whose}: {rate:.0} creates/s; start to a list of {listed} Secrets {took:.2} s"
        );
    }
    Ok(())
}

fn flags(cluster: &Cluster, provider: &str, plugin: &KmsPlugin) -> Result<Vec<String>, Failure> {
    let said = match provider {
        "none" => return Ok(Vec::new()),
        "kms" => format!("kms: {{apiVersion: v2, name: plugin, endpoint: '{}'}}", plugin.endpoint()),
        provider => format!("{provider}: {{keys: [{{name: key1, secret: {}}}]}}", STANDARD.encode([7; 32])),
    };
    let file = cluster.dir().join("encryption.yaml");
    let head = "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\n";
    fs::write(&file, format!("{head}resources: [{{resources: [secrets], providers: [{{{said}}}]}}]\n"))?;
    Ok(vec![format!("--encryption-provider-config={}", file.display())])
}

fn secret(number: usize) -> Value {
    let data: Vec<u8> = (0..DATA_BYTES).map(|at| (number.wrapping_mul(31) + at * at) as u8).collect();
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("secret-{number:05}") },
        "data": { "tls.key": STANDARD.encode(data) },
    })
}

async fn client(server: &ControlPlane) -> Result<Client, Failure> {
    let kubeconfig = Kubeconfig::read_from(server.kubeconfig())?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

async fn send(client: &Client, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request =
        http::Request::builder().method(method).uri(path).header("Content-Type", "application/json");
    Ok(client.request(request.body(body)?).await?)
}
