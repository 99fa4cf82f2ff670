//! What is in a pod's volumes.
//!
//! In: a pod, one of its volumes, the server. Out: the files of the volume. Never: kinds of volumes that
//! have nothing to do with the server but empty ones.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::api::{Api, each, text_of};

/// By their paths in the volume.
type Files = Vec<(String, Vec<u8>)>;

/// Writes what `container` mounts below `root`.
///
/// # Errors
/// It is not there, or of a kind that is not known here.
pub(super) fn write(api: &Api, pod: &Value, container: &Value, root: &Path) -> Result<(), String> {
    for mount in each(&container["volumeMounts"]) {
        if ["subPath", "subPathExpr"].iter().any(|key| !mount[*key].is_null()) {
            return Err("a part of a volume is not mounted here".to_owned());
        }
        let name = &mount["name"];
        let volume = each(&pod["spec"]["volumes"]).find(|volume| volume["name"] == *name);
        let volume = volume.ok_or_else(|| format!("no volume {name}"))?;
        let at = root.join(text_of(&mount["mountPath"]).trim_start_matches('/'));
        std::fs::create_dir_all(&at).map_err(|e| format!("{}: {e}", at.display()))?;
        for (path, data) in files(api, pod, volume)? {
            write_file(&at.join(path), &data)?;
        }
    }
    Ok(())
}

pub(super) fn write_file(at: &Path, data: &[u8]) -> Result<(), String> {
    let dir = at.parent().unwrap_or(at);
    let done = std::fs::create_dir_all(dir).and_then(|()| std::fs::write(at, data));
    done.map_err(|e| format!("{}: {e}", at.display()))
}

fn files(api: &Api, pod: &Value, volume: &Value) -> Result<Files, String> {
    if !volume["emptyDir"].is_null() {
        let mounts = each(&pod["spec"]["containers"]).flat_map(|container| each(&container["volumeMounts"]));
        return match mounts.filter(|mount| mount["name"] == volume["name"]).count() {
            0 | 1 => Ok(Files::new()),
            _ => Err("containers share no empty volume here".to_owned()),
        };
    }
    if !volume["projected"].is_null() {
        let sources = each(&volume["projected"]["sources"]);
        return sources
            .map(|source| source_files(api, pod, source))
            .collect::<Result<Vec<_>, _>>()
            .map(|all| all.concat());
    }
    source_files(api, pod, volume)
}

/// What a volume, or one source of a projected one, has.
fn source_files(api: &Api, pod: &Value, source: &Value) -> Result<Files, String> {
    let namespace = text_of(&pod["metadata"]["namespace"]);
    let object = |resource: &str, from: &Value, name: &Value| match api
        .get(&format!("/api/v1/namespaces/{namespace}/{resource}/{}", text_of(name)))
    {
        Err(why) if why.starts_with("404 ") && from["optional"] == true => Ok(Value::Null),
        other => other,
    };
    if let Some(from) = some(&source["secret"]) {
        let name = if from["secretName"].is_null() { &from["name"] } else { &from["secretName"] };
        return chosen(secret_files(&object("secrets", from, name)?)?, from);
    }
    if let Some(from) = some(&source["configMap"]) {
        return chosen(config_map_files(&object("configmaps", from, &from["name"])?)?, from);
    }
    if let Some(from) = some(&source["downwardAPI"]) {
        let each = each(&from["items"]).map(|item| {
            let value = field(pod, text_of(&item["fieldRef"]["fieldPath"]))?;
            Ok((text_of(&item["path"]).to_owned(), value.into_bytes()))
        });
        return each.collect();
    }
    if let Some(from) = some(&source["serviceAccountToken"]) {
        return Ok(vec![(text_of(&from["path"]).to_owned(), token(api, pod, from)?.into_bytes())]);
    }
    Err(format!("no volumes of this kind here: {source}"))
}

fn some(value: &Value) -> Option<&Value> {
    (!value.is_null()).then_some(value)
}

fn secret_files(secret: &Value) -> Result<Files, String> {
    let data = secret["data"].as_object().into_iter().flatten();
    let decoded = data.map(|(key, value)| {
        let bytes = STANDARD.decode(text_of(value)).map_err(|e| format!("{key}: {e}"))?;
        Ok((key.clone(), bytes))
    });
    decoded.collect()
}

fn config_map_files(map: &Value) -> Result<Files, String> {
    let texts = map["data"].as_object().into_iter().flatten();
    let texts = texts.map(|(key, value)| (key.clone(), text_of(value).as_bytes().to_vec()));
    let mut files: Files = texts.collect();
    files.extend(secret_files(&json!({ "data": map["binaryData"] }))?);
    Ok(files)
}

/// Those that `from` names by its items, or all of them.
fn chosen(files: Files, from: &Value) -> Result<Files, String> {
    if from["items"].is_null() || files.is_empty() {
        return Ok(files);
    }
    let named = each(&from["items"]).map(|item| {
        let (key, path) = (text_of(&item["key"]), text_of(&item["path"]).to_owned());
        let (_, data) =
            files.iter().find(|(known, _)| known == key).ok_or_else(|| format!("no key {key}"))?;
        Ok((path, data.clone()))
    });
    named.collect()
}

/// A field of the pod that containers may be told.
pub(super) fn field(pod: &Value, path: &str) -> Result<String, String> {
    let meta = &pod["metadata"];
    let value = match path {
        "metadata.name" => &meta["name"],
        "metadata.namespace" => &meta["namespace"],
        "metadata.uid" => &meta["uid"],
        "spec.nodeName" => &pod["spec"]["nodeName"],
        "spec.serviceAccountName" => &pod["spec"]["serviceAccountName"],
        _ => return Err(format!("the field {path} is told nobody here")),
    };
    Ok(text_of(value).to_owned())
}

fn token(api: &Api, pod: &Value, from: &Value) -> Result<String, String> {
    let [namespace, name, uid] = ["namespace", "name", "uid"].map(|key| text_of(&pod["metadata"][key]));
    let account = text_of(&pod["spec"]["serviceAccountName"]);
    let audience = &from["audience"];
    let audiences = if audience.is_null() { json!([]) } else { json!([audience]) };
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {
            "audiences": audiences,
            "expirationSeconds": from["expirationSeconds"],
            "boundObjectRef": { "apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid },
        },
    });
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    Ok(text_of(&api.ask("POST", &path, &request)?["status"]["token"]).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_decoded_and_items_name_what_is_there_and_where() {
        let files = secret_files(&json!({ "data": { "a": "eA==", "b": "eQ==" } })).expect("base64");
        assert_eq!(files, [("a".to_owned(), b"x".to_vec()), ("b".to_owned(), b"y".to_vec())]);
        let items = json!({ "items": [{ "key": "b", "path": "sub/c" }] });
        assert_eq!(chosen(files.clone(), &items), Ok(vec![("sub/c".to_owned(), b"y".to_vec())]));
        assert!(chosen(files, &json!({ "items": [{ "key": "z", "path": "z" }] })).is_err());
    }

    #[test]
    fn config_maps_have_texts_and_bytes() {
        let map = json!({ "data": { "a": "x" }, "binaryData": { "b": "eQ==" } });
        let files = config_map_files(&map).expect("base64");
        assert_eq!(files, [("a".to_owned(), b"x".to_vec()), ("b".to_owned(), b"y".to_vec())]);
    }
}
