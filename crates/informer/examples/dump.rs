//! What a handler sees of any resource, line by line.
//!
//! `cargo run -p forebay-informer --example dump -- GROUP VERSION PLURAL KIND NAMESPACE COUNT`, the core
//! group as `-`. In: a kubeconfig. Out: COUNT notices. Never: knows the kind.

use forebay_informer::{Factory, Handle, Notice, Options, Watched};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [group, version, plural, kind, namespace, count] = &args[..] else {
        return Err("GROUP VERSION PLURAL KIND NAMESPACE COUNT".into());
    };
    let group = if group == "-" { "" } else { group };
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
    let config = kube::Config::infer().await?;
    let connected = forebay_connector::connect(config, forebay_connector::PoolOptions::default())?;
    let factory = Factory::new(connected, Options::default());
    let objects = factory.informer(&Watched::<DynamicObject>::of(&resource).namespace(namespace))?;
    let mut events = objects.subscribe();
    let shown = |object: &Handle<DynamicObject>| {
        format!("{}/{} {}", object.namespace(), object.name(), object.revision())
    };
    for _ in 0..count.parse::<usize>()? {
        match events.next().await {
            Notice::Added(new) => println!("ADDED {}", shown(&new)),
            Notice::Updated { new, .. } => println!("UPDATED {}", shown(&new)),
            Notice::Deleted(gone) => println!("DELETED {}", shown(&gone)),
            Notice::Synced => println!("SYNCED"),
            Notice::Relisted { differences } => println!("RELISTED {differences}"),
            Notice::LetGo { .. } => println!("LET GO"),
            Notice::Resync(same) => println!("RESYNC {}", shown(&same)),
            Notice::Ended => return Err("it ended".into()),
        }
    }
    Ok(())
}
