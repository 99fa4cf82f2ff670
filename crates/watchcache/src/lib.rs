//! Per resource: ingest, snapshot, lanes, watchers, initial events, bookmarks, freshness.
