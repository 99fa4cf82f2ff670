//! The other servers of the store: what they say, who was told to go to them, and who went.

use forebay_documents::metrics::Text;
use forebay_neighbours::Neighbour;
use forebay_transport::{ConnectionCounts, GoesFor};

use crate::neighbourhood::Neighbourhood;

/// Servers are a bounded set: no more than so many are listened to.
pub fn write(text: &mut Text, neighbourhood: Option<&Neighbourhood>, counts: &ConnectionCounts) {
    let name = "forebay_connections_told_to_go_total";
    let help = "Connections that were told to go to another server: as others hold less, as a request was refused, \
                or as this server ends.";
    text.family(name, "counter", help);
    for (name_of, why) in
        [("share", GoesFor::Share), ("refused", GoesFor::Refused), ("shutdown", GoesFor::Shutdown)]
    {
        text.value(name, &[("reason", name_of)], counts.told_to_go(why).get());
    }
    let heard = neighbourhood.map(Neighbourhood::heard).unwrap_or_default();
    let words = || {
        heard.servers().filter_map(|(server, said)| match said {
            Neighbour::Tells(word) => Some((server, word)),
            Neighbour::Silent => None,
        })
    };
    let name = "forebay_neighbours";
    text.family(name, "gauge", "Other servers on this store, by whether they say what they hold.");
    let (all, says) = (heard.servers().count(), words().count());
    for (kind, count) in [("true", says), ("false", all - says)] {
        text.value(name, &[("says", kind)], count);
    }
    let name = "forebay_neighbour_connections";
    text.family(name, "gauge", "Connections that another server has said that it holds.");
    words().for_each(|(server, word)| text.value(name, &[("server", server)], word.connections));
    let name = "forebay_neighbour_room";
    text.family(name, "gauge", "Connections that another server has said that it has room for.");
    words().for_each(|(server, word)| text.value(name, &[("server", server)], word.room));
    let name = "forebay_shutdown_neighbour_connections_gained";
    let help =
        "Connections that another server holds more than when this one began to end: where its clients went.";
    text.family(name, "gauge", help);
    if let Some(departure) = neighbourhood.and_then(Neighbourhood::departure) {
        departure.gained(&heard).for_each(|(server, gained)| text.value(name, &[("server", server)], gained));
    }
}
