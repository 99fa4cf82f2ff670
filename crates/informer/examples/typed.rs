//! The ConfigMaps of a namespace by their mode, through an index, then the next change.
//!
//! `cargo run -p forebay-informer --example typed -- NAMESPACE`. In: a kubeconfig. Out: lines. Never: a list
//! for what it knows.

use forebay_informer::{Factory, Notice, Options, Watched};
use k8s_openapi::api::core::v1::ConfigMap;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let namespace = std::env::args().nth(1).unwrap_or_else(|| "default".into());
    let config = kube::Config::infer().await?;
    let connected = forebay_connector::connect(config, forebay_connector::PoolOptions::default())?;
    let factory = Factory::new(connected, Options::default());
    let watched = Watched::<ConfigMap>::all().namespace(&namespace).index("data.mode");
    let maps = factory.informer(&watched)?;
    maps.synced().await?;
    for map in maps.view()?.indexed("data.mode", "blue")? {
        println!(
            "{} is blue and has {} entries",
            map.name(),
            map.typed()?.data.as_ref().map_or(0, |data| data.len())
        );
    }
    let mut events = maps.subscribe();
    loop {
        match events.next().await {
            Notice::Updated { old, new } => {
                println!("{} went from revision {} to {}", new.name(), old.revision(), new.revision());
                return Ok(());
            }
            Notice::Ended => return Err("it ended".into()),
            _ => {}
        }
    }
}
