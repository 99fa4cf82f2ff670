//! Lists that are asked for at a rate, whatever becomes of those before: how many are answered in time.
//!
//! In: a server. Out: rates. Each user has a connection of HTTP/2 that is kept: what is given up is one
//! stream, as of a client whose user has gone away. Never: a request that is tried again.

use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::header;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::client::{Client, Http2Stream, Protocol, RestConfig};
use crate::{Error, pods, users};

/// What is not answered by then is of no use to who asked.
pub const IN_TIME: Duration = Duration::from_secs(2);
/// Requests that wait at a time; beyond, none is sent.
const WAITING_MAX: usize = 2_000;
/// Clients that ask as fast as they are answered, to find the most that can be done.
const CLOSED: [usize; 2] = [4, 16];
/// What `kubectl get` asks for: it costs a server more than whoever reads it.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

pub struct Offer {
    target: RestConfig,
    // One a user.
    clients: Vec<Client>,
    asked: usize,
}

impl Offer {
    pub async fn open(target: &RestConfig) -> Result<Offer, Error> {
        let mut clients = Vec::with_capacity(users::APPS);
        for _ in 0..users::APPS {
            clients.push(Client::connect(target, Protocol::Http2).await?);
        }
        Ok(Offer { target: target.clone(), clients, asked: 0 })
    }

    /// The most lists in a second that are answered to those who ask one after the other.
    pub async fn best(&mut self, time: Duration) -> f64 {
        let mut best = 0.0_f64;
        for clients in CLOSED {
            let (begin, end) = (Instant::now(), Instant::now() + time);
            let mut asking = JoinSet::new();
            for client in 0..clients {
                let Some(stream) = self.stream(client).await else { continue };
                asking.spawn(async move {
                    let (mut number, mut done) = (client, 0_usize);
                    while Instant::now() < end {
                        done += usize::from(is_done(stream.clone(), client, number).await);
                        number += 1;
                    }
                    done
                });
            }
            let done: usize = asking.join_all().await.into_iter().sum();
            best = best.max(done as f64 / begin.elapsed().as_secs_f64());
        }
        best
    }

    /// Lists in a second that are answered in time, of `rate` that are sent.
    pub async fn at(&mut self, rate: f64, time: Duration) -> f64 {
        let begin = Instant::now();
        let mut asking = JoinSet::new();
        let mut done = 0_usize;
        for number in 0..(rate * time.as_secs_f64()) as usize {
            let due = begin + Duration::from_secs_f64(number as f64 / rate);
            tokio::time::sleep_until(due.into()).await;
            while let Some(ended) = asking.try_join_next() {
                done += usize::from(ended.unwrap_or(false));
            }
            self.asked += 1;
            let user = self.asked % users::APPS;
            if asking.len() < WAITING_MAX
                && let Some(stream) = self.stream(user).await
            {
                asking.spawn(is_done(stream, user, number));
            }
        }
        // What is sent at the end has as much time as what was sent before; the server is busy with it, too.
        while let Some(ended) = asking.join_next().await {
            done += usize::from(ended.unwrap_or(false));
        }
        done as f64 / begin.elapsed().max(time).as_secs_f64()
    }

    /// Of the connection of a user, which is made anew where it was lost.
    async fn stream(&mut self, user: usize) -> Option<Http2Stream> {
        let client = &mut self.clients[user];
        if let Some(stream) = client.stream() {
            return Some(stream);
        }
        let connected = timeout(IN_TIME, Client::connect(&self.target, Protocol::Http2)).await;
        *client = connected.ok()?.ok()?;
        client.stream()
    }
}

/// Asks for the pods of one namespace after the other; whether they came in time.
async fn is_done(stream: Http2Stream, user: usize, number: usize) -> bool {
    let path = format!("/api/v1/namespaces/{}/pods?resourceVersion=0", pods::namespace(number));
    let authorization = format!("Bearer {}{user}", users::APP);
    let headers = [(header::ACCEPT, TABLE), (header::AUTHORIZATION, authorization.as_str())];
    let answered = async {
        let answer = stream.get(&path, &headers).await.ok()?;
        let is_list = answer.status() == 200;
        let mut body = answer.into_body();
        while let Some(frame) = body.frame().await {
            frame.ok()?;
        }
        Some(is_list)
    };
    timeout(IN_TIME, answered).await.ok().flatten().unwrap_or(false)
}
