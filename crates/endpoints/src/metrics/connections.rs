//! Connections: who is there, and why others went.

use forebay_transport::{ConnectionCounts, GoesFor};

use forebay_documents::metrics::Text;

pub fn write(text: &mut Text, counts: &ConnectionCounts) {
    let (seated, strangers) = counts.read();
    let name = "forebay_connections_open";
    text.family(name, "gauge", "Connections that have a seat, by whether anybody was authenticated on them.");
    for (client, count) in [("known", seated.saturating_sub(strangers)), ("stranger", strangers)] {
        text.value(name, &[("client", client)], count);
    }
    let name = "forebay_connections_ended_total";
    text.family(
        name,
        "counter",
        "Connections that were ended: strangers gave way, nothing was asked on them, or nothing read.",
    );
    for (why, count) in [
        ("gave_way", &counts.gave_way),
        ("idle", counts.told_to_go(GoesFor::Idle)),
        ("unread", &counts.unread),
    ] {
        text.value(name, &[("reason", why)], count.get());
    }
}
