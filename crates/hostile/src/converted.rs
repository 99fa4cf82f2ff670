//! Custom resources that a row has a webhook convert.
//!
//! In: what the webhook answers. Out: a definition that is served in two versions, stored in the first, and
//! objects of it. Never: a webhook that is asked about the bystander.

use forebay_contenders::Error;
use forebay_hook::{Hook, tabs};
use serde_json::{Value, json};

use super::prelude::{DEFINITIONS, Duration, Request, Stage, Who};
use super::request::JSON;
use super::said::Said;

const ANSWER: &str = "answer";

/// Of one row: its group has the row's name.
#[derive(Clone, Copy, Debug)]
pub struct ConvertedTabs {
    pub row: &'static str,
}

impl ConvertedTabs {
    fn path(self, version: &str) -> String {
        format!("/apis/{}.hostile.dev/{version}/namespaces/hostile/tabs", self.row)
    }

    /// A LIST of what the webhook has to make, which may take two seconds.
    pub fn list(self) -> Request {
        Request::get(format!("{}?timeout=2s", self.path("v2")))
    }

    /// A GET of one of them.
    pub fn get(self, index: usize) -> Request {
        Request::get(format!("{}/tab-{index}?timeout=2s", self.path("v2")))
    }

    /// Makes the definition and so many objects as they are stored, and has the webhook answer so.
    pub async fn start(self, stage: &Stage, objects: usize, answer: Value) -> Result<(), Error> {
        let hook = Hook::start().await;
        hook.answers(ANSWER, answer);
        let (group, url) = (format!("{}.hostile.dev", self.row), format!("{}/row/{ANSWER}", hook.url()));
        let mut definition = tabs::definition(&url, &hook.authority);
        definition["metadata"]["name"] = format!("tabs.{group}").into();
        definition["spec"]["group"] = group.clone().into();
        stage.make(Request::post(DEFINITIONS, JSON, definition.to_string())).await?;
        let mut wire = stage.of(Who::Admin).connect().await?;
        let path = self.path("v1");
        let mut is_served = false;
        for _ in 0..500 {
            is_served = wire.ask(&Request::get(path.clone())).await.said == Said::Status(200);
            if is_served {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if !is_served {
            return Err(Error::Answer { what: format!("{path} after 10 s"), answer: "not served".into() });
        }
        for index in 0..objects {
            let tab = json!({
                "apiVersion": format!("{group}/v1"), "kind": "Tab",
                "metadata": { "name": format!("tab-{index}") }, "spec": { "hostPort": format!("h:{index}") },
            });
            let heard = wire.ask(&Request::post(path.clone(), JSON, tab.to_string())).await;
            if !matches!(heard.said, Said::Status(201 | 409)) {
                return Err(Error::Answer { what: "prepare".into(), answer: heard.text });
            }
        }
        Ok(())
    }
}
