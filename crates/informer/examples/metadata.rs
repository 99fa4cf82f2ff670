//! Who owns what: metadata alone is read, whatever else an object has.
//!
//! `cargo run -p forebay-informer --example metadata -- NAMESPACE`. In: a kubeconfig. Out: a line for each
//! ConfigMap. Never: decodes a whole object.

use forebay_informer::{Factory, Options, Watched};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let namespace = std::env::args().nth(1).unwrap_or_else(|| "default".into());
    let client = kube::Client::try_default().await?;
    let factory = Factory::new(client, Options::default());
    let maps = factory.informer(&Watched::<ConfigMap>::all().namespace(&namespace))?;
    let metadata = maps.cast::<PartialObjectMeta<ConfigMap>>();
    metadata.synced().await?;
    for map in metadata.view()?.iter() {
        let owners = map.metadata()?.owner_references.len();
        println!("{} has {owners} owners and labels {:?}", map.name(), map.labels().collect::<Vec<_>>());
    }
    Ok(())
}
