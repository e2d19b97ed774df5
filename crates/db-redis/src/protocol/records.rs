//! YCSB's records as commands: a hash or a string each, and the index of keys.

use super::index::INDEX_KEY;
use super::options::RecordLayout;
use super::resp::{put_array, put_bulk, put_command, put_length};
use super::state::RedisDriver;
use dyno_types::Request;
use dyno_types::limits::SCAN_RECORDS;
use dyno_workload::keys::java_hash_ascii;

impl RedisDriver {
    pub(super) fn put_read(&mut self, request: &Request, key: &[u8], out: &mut Vec<u8>) {
        if self.options.layout == RecordLayout::String {
            return put_command(out, &[b"GET", key]);
        }
        let fields = self.content.fields(request);
        if fields == 0 {
            out.extend_from_slice(b"*2\r\n$7\r\nHGETALL\r\n");
            return put_bulk(out, key);
        }
        put_array(out, 2 + fields);
        out.extend_from_slice(b"$5\r\nHMGET\r\n");
        put_bulk(out, key);
        for field in 0..fields {
            self.put_name(request, field, out);
        }
    }

    fn put_name(&mut self, request: &Request, field: usize, out: &mut Vec<u8>) {
        self.scratch.clear();
        self.content.name(request, field, &mut self.scratch);
        put_bulk(out, &self.scratch);
    }

    fn put_value(&self, request: &Request, field: usize, out: &mut Vec<u8>) {
        let length = self.content.value_len(request, field);
        put_length(out, length);
        let at = out.len();
        self.content.value(request, field, out);
        debug_assert_eq!(out.len() - at, length, "what follows would be read as part of the value");
        out.extend_from_slice(b"\r\n");
    }

    pub(super) fn put_write(&mut self, request: &Request, key: &[u8], out: &mut Vec<u8>) {
        let fields = self.content.fields(request);
        if self.options.layout == RecordLayout::String {
            let ttl_ms = self.options.ttl_ms;
            put_array(out, if ttl_ms.is_some() { 5 } else { 3 });
            out.extend_from_slice(b"$3\r\nSET\r\n");
            put_bulk(out, key);
            let length: usize = (0..fields).map(|f| self.content.value_len(request, f)).sum();
            put_length(out, length);
            let at = out.len();
            for field in 0..fields {
                self.content.value(request, field, out);
            }
            debug_assert_eq!(out.len() - at, length, "what follows would be read as part of the value");
            out.extend_from_slice(b"\r\n");
            if let Some(ms) = ttl_ms {
                put_bulk(out, b"PX");
                put_bulk(out, ms.to_string().as_bytes());
            }
            return;
        }
        put_array(out, 2 + 2 * fields);
        out.extend_from_slice(b"$5\r\nHMSET\r\n");
        put_bulk(out, key);
        for field in 0..fields {
            self.put_name(request, field, out);
            self.put_value(request, field, out);
        }
    }

    /// A record's time to live, which every write gives it anew.
    pub(super) fn put_expiry(&self, key: &[u8], out: &mut Vec<u8>) {
        let ms = self.options.ttl_ms.unwrap_or_default().to_string();
        put_command(out, &[b"PEXPIRE", key, ms.as_bytes()]);
    }

    pub(super) fn put_scan(&self, request: &Request, key: &[u8], out: &mut Vec<u8>) {
        let score = java_hash_ascii(0, key).to_string();
        let limit = request.limit.min(SCAN_RECORDS).to_string();
        let parts: [&[u8]; 7] =
            [b"ZRANGEBYSCORE", INDEX_KEY, score.as_bytes(), b"+inf", b"LIMIT", b"0", limit.as_bytes()];
        put_command(out, &parts);
    }
}
