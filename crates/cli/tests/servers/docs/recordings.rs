//! Commands of docs/recording.md.

use super::commands_of::{Row, there};

pub(super) fn recording() -> Vec<Row> {
    let (capture, proxy) = ("record_capture.rs", "record_proxy.rs");
    vec![
        there(
            "record traffic.pcap --point server -o traffic.dyno",
            capture,
            "counts_of_a_capture_are_those_of_the_server",
        ),
        there(
            "record --listen 127.0.0.1:6380 --to redis://127.0.0.1:6379 --duration 10m -o traffic.dyno",
            proxy,
            "counts_of_a_proxy_are_those_of_the_server",
        ),
        there(
            "record --listen 127.0.0.1:6380 --to 'rediss://cache.example:6379?ca=ca.pem'",
            proxy,
            "tls_is_possible_on_either_side",
        ),
        there(
            "record --listen 0.0.0.0:6380 --to redis://127.0.0.1:6379 --tls-cert server.pem --tls-key server.key",
            proxy,
            "tls_is_possible_on_either_side",
        ),
    ]
}

pub(super) fn recording_memcached() -> Vec<Row> {
    let file = "record_memcached.rs";
    let (capture, proxy) =
        ("a_capture_of_memcached_records_what_it_counts", "a_proxy_before_memcached_records_what_it_counts");
    vec![
        there("record memcached.pcap --point server -o memcached.dyno", file, capture),
        there(
            "record --listen 127.0.0.1:11212 --to memcached://127.0.0.1:11211 -o memcached.dyno",
            file,
            proxy,
        ),
        there("replay memcached.dyno memcached://127.0.0.1:11211", file, proxy),
    ]
}

pub(super) fn recording_mongodb() -> Vec<Row> {
    let file = "record_mongodb.rs";
    let tools = "records_of_tools.rs";
    vec![
        there(
            "record mongodb.pcap --point server -o mongodb.dyno",
            file,
            "counts_of_a_capture_are_those_of_mongod",
        ),
        there(
            "record --listen 127.0.0.1:27018 --to mongodb://127.0.0.1:27017 -o mongodb.dyno",
            file,
            "counts_of_a_proxy_are_those_of_mongod",
        ),
        there(
            "record --listen 127.0.0.1:27018 --to 'mongodb://db.example/?tls=true&tlsCAFile=ca.pem'",
            file,
            "a_proxy_before_mongod_with_tls",
        ),
        there(
            "record dump/shop/system.profile.bson -o shop.dyno",
            file,
            "what_mongod_has_written_down_is_what_was_sent",
        ),
        there(
            "record /var/log/mongodb/mongod.log -o slow.dyno",
            file,
            "what_mongod_has_written_down_is_what_was_sent",
        ),
        there(
            "record traffic.pcap --anonymise shop.key -o shop.dyno",
            "anonymise.rs",
            "a_capture_of_redis_tells_no_keys_and_no_values",
        ),
        there(
            "record traffic.playback.gz -o shop.dyno",
            tools,
            "a_playback_file_of_mongoreplay_is_sent_once_more",
        ),
        there(
            "record traffic-*.bin -o dragonfly.dyno",
            tools,
            "logs_of_dragonflys_threads_are_sent_once_more",
        ),
        there("record command.log -o proxy.dyno", tools, "a_command_log_has_replies_to_compare_with"),
        there("record cluster52.sort.zst -o cluster52.dyno", tools, "requests_of_a_cache_are_sent_once_more"),
    ]
}
