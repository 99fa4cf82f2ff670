//! A client that asks on behalf of a user, and connects anew when its connection is lost.
//!
//! In: where, and a token. Out: answers. Never: a request that is repeated by itself.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::HeaderName;
use hyper::{Method, Response, header};
use tokio::time::timeout;

use crate::Error;
use crate::client::{Client, Protocol, RestConfig, WholeResponse};

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

#[derive(Debug)]
pub struct Caller {
    target: RestConfig,
    protocol: Protocol,
    authorization: String,
    client: Option<Client>,
}

impl Caller {
    pub fn new(target: RestConfig, protocol: Protocol, token: &str) -> Caller {
        Caller { target, protocol, authorization: format!("Bearer {token}"), client: None }
    }

    pub async fn get(&mut self, path: &str, limit: Duration) -> Result<WholeResponse, Error> {
        self.send(Method::GET, path, JSON, Bytes::new(), limit).await
    }

    /// GETs without keeping the body; the status, and the bytes that it had.
    pub async fn skim(&mut self, path: &str, accept: &str, limit: Duration) -> Result<(u16, u64), Error> {
        let skimmed = async {
            let answer = self.start(Method::GET, path, (accept, JSON), Bytes::new()).await?;
            let (status, mut bytes) = (answer.status().as_u16(), 0);
            let mut body = answer.into_body();
            while let Some(frame) = body.frame().await {
                bytes += frame.map_err(lost)?.data_ref().map_or(0, |data| data.len() as u64);
            }
            Ok((status, bytes))
        };
        let answer = timeout(limit, skimmed).await.unwrap_or_else(|_| Err(late(limit)));
        if answer.is_err() {
            self.client = None;
        }
        answer
    }

    pub async fn post(&mut self, path: &str, body: String, limit: Duration) -> Result<WholeResponse, Error> {
        self.send(Method::POST, path, JSON, Bytes::from(body), limit).await
    }

    /// A merge patch.
    pub async fn patch(&mut self, path: &str, body: String, limit: Duration) -> Result<WholeResponse, Error> {
        self.send(Method::PATCH, path, MERGE_PATCH, Bytes::from(body), limit).await
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        kind: &str,
        body: Bytes,
        limit: Duration,
    ) -> Result<WholeResponse, Error> {
        let answered = timeout(limit, self.exchange(method, path, kind, body)).await;
        let answer = answered.unwrap_or_else(|_| Err(late(limit)));
        if answer.is_err() {
            self.client = None;
        }
        answer
    }

    async fn exchange(
        &mut self,
        method: Method,
        path: &str,
        kind: &str,
        body: Bytes,
    ) -> Result<WholeResponse, Error> {
        let answer = self.start(method, path, (JSON, kind), body).await?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(lost)?.to_bytes();
        Ok(WholeResponse { status, body })
    }

    async fn start(
        &mut self,
        method: Method,
        path: &str,
        (accept, kind): (&str, &str),
        body: Bytes,
    ) -> Result<Response<Incoming>, Error> {
        let headers: [(HeaderName, &str); 3] = [
            (header::ACCEPT, accept),
            (header::CONTENT_TYPE, kind),
            (header::AUTHORIZATION, &self.authorization),
        ];
        let client = match self.client.take() {
            Some(client) => client,
            None => Client::connect(&self.target, self.protocol).await?,
        };
        self.client.insert(client).start_with(method, path, &headers, body).await
    }
}

fn lost(why: hyper::Error) -> Error {
    Error::Connection(why.to_string())
}

fn late(limit: Duration) -> Error {
    Error::Connection(format!("no answer in {limit:?}"))
}
