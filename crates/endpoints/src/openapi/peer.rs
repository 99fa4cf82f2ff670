//! The comparison with saved documents of a real kube-apiserver. In: a directory of them. Out: differences. Never: serves.

use super::contents::*;
use forebay_schema::builtin::table;
use forebay_schema::openapi::Kinds;

#[test]
fn dump() {
    let catalog = crate::discovery::testing::catalog();
    let dir = "/tmp/disc/ours";
    std::fs::create_dir_all(dir).unwrap();
    let kinds = Kinds::new(table());
    let subjects = subjects(&catalog);
    let t = std::time::Instant::now();
    for s in &subjects {
        let b = super::json::v3(&Contents::of(&catalog, s), &kinds);
        std::fs::write(format!("{dir}/v3.{}.json", s.path().replace('/', "_")), b).unwrap();
    }
    println!("v3 {:?}", t.elapsed());
    let t = std::time::Instant::now();
    let b = super::json::v2(&Contents::of_all(&catalog, &subjects), &kinds);
    println!("v2 {:?} {}", t.elapsed(), b.len());
    std::fs::write(format!("{dir}/v2.json"), b).unwrap();
}

#[test]
fn dump_all() {
    use forebay_schema::openapi::*;
    let t = table();
    let kinds = Kinds::new(t);
    let mut all = serde_json::Map::new();
    for (id, _) in t.types() {
        all.insert(t.openapi_name(id).unwrap(), definition(t, &kinds, id, Dialect::V3, None));
    }
    std::fs::write("/tmp/disc/ours/all.json", serde_json::to_vec(&all).unwrap()).unwrap();
}
