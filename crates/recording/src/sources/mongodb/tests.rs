use super::shell_text::read_shell_document;
use super::*;
use crate::sources::extended_json::{JsonOf, read_line};
use crate::sources::tests::recorded;
use dyno_types::bson::{
    build_document, put_date, put_document, put_double, put_int32, put_int64, put_string,
};

/// A document in words.
fn words_of(document: &[u8]) -> String {
    bson::check(document).unwrap();
    let words = bson::read_elements(document).unwrap().map(|element| {
        let element = element.unwrap();
        let value = match (element.as_document(), element.as_str(), element.as_f64()) {
            (Some(inner), ..) => format!("{{{}}}", words_of(inner)),
            (_, Some(text), _) => text.to_owned(),
            (_, _, Some(number)) => format!("{number}:{:x}", element.kind),
            _ => format!("{:?}:{:x}", element.value, element.kind),
        };
        format!("{}={value}", String::from_utf8_lossy(element.name))
    });
    words.collect::<Vec<_>>().join(" ")
}

fn shown(all: &[Entry]) -> Vec<String> {
    let show = |one: &Entry| {
        let text = |number| String::from_utf8_lossy(one.arguments.word(number)).into_owned();
        let reply = one.reply.as_ref().map_or("?".into(), |reply| match reply.kind {
            RecordedKind::Error => format!("error {}", reply.error),
            RecordedKind::Reply(kind) => format!("{} {}", kind.kind_name(), reply.size),
        });
        assert!(one.reply.as_ref().is_none_or(|reply| reply.after_ns.is_none()));
        let body = words_of(one.arguments.word(2));
        format!("{} {} {} {}: {body} -> {reply}", one.at_ns / 1_000_000, one.connection, text(0), text(1))
    };
    all.iter().map(show).collect()
}

fn left(totals: &RecordingTotals) -> Vec<(&str, u64)> {
    totals.left_out.iter().map(|(name, count)| (name.as_str(), *count)).collect()
}

/// A document of the profiler: when it ended and what it took, milliseconds.
fn profiled(op: &str, at: i64, took: i32, command: &[u8], more: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    build_document(|out| {
        put_string(out, "op", op);
        put_string(out, "ns", "t.c");
        put_document(out, "command", command);
        more(out);
        put_int32(out, "millis", took);
        put_date(out, "ts", 1_700_000_000_000 + at);
    })
}

#[test]
fn the_profiler_s_documents_become_commands_in_the_order_of_their_begins() {
    let command = |name: &str, value: i64| {
        build_document(|out| {
            if value == 0 {
                put_string(out, name, "c")
            } else {
                put_int64(out, name, value)
            }
            put_string(out, "$db", "t");
        })
    };
    let statement = |limit: &str| {
        build_document(|out| {
            put_document(out, "q", &build_document(|out| put_int32(out, "_id", 3)));
            match limit {
                "limit" => put_int32(out, "limit", 1),
                _ => put_document(out, "u", &build_document(|out| put_int32(out, "x", 1))),
            }
        })
    };
    let whole = build_document(|out| {
        put_string(out, "insert", "c");
        bson::put_head(out, kind::ARRAY, "documents");
        let list = bson::open(out);
        bson::close(out, list);
        put_string(out, "$db", "t");
    });
    let file = [
        profiled("query", 100, 0, &command("find", 0), |out| {
            put_double(out, "cursorid", 77.0);
            put_int32(out, "nreturned", 5);
        }),
        profiled("getmore", 110, 1, &command("getMore", 77), |out| {
            put_double(out, "cursorid", 77.0);
            put_int32(out, "nreturned", 2);
        }),
        profiled("update", 120, 5, &statement("u"), |out| put_int32(out, "nMatched", 1)),
        profiled("remove", 121, 5, &statement("limit"), |out| put_int32(out, "ndeleted", 0)),
        profiled("insert", 122, 0, &command("insert", 0), |out| put_int32(out, "ninserted", 1)),
        profiled("insert", 123, 0, &whole, |out| put_int32(out, "exceptionCode", 11_000)),
        profiled("command", 150, 60, &command("count", 0), |_| {}),
        profiled("command", 151, 0, &command("isMaster", 1), |_| {}),
        profiled("command", 151, 0, &command("createUser", 0), |_| {}),
        profiled("command", 152, 0, &command("$truncated", 0), |_| {}),
        b"\x20\0\0\0\x02op".to_vec(),
    ]
    .concat();
    assert!(is_profile(&file) && !is_profile(b"{\"t\":1}") && !is_profile(b"\x05\0\0\0\0"));
    let (all, totals, header) = recorded(|new| record_profile(&mut &file[..], new));
    assert_eq!(
        shown(&all),
        [
            "0 0 count t: count=c -> ?",
            "10 1 find t: find=c -> array 5",
            "19 1 getMore t: getMore=77:12 _openedBy={connection=1:10 command=0:12} -> array 2",
            "25 1 update t: update=c updates={0={q={_id=3:10} u={x=1:10}}} -> status 1",
            "26 2 delete t: delete=c deletes={0={q={_id=3:10} limit=1:10}} -> status 0",
            "33 1 insert t: insert=c documents={} -> error 11000"
        ]
    );
    let mut expected = vec![
        ("credentials", 1),
        ("documents that are cut off at the file's end", 1),
        (reason::CHECKS, 1),
        (reason::CUT, 1),
        (reason::INSERTS, 1),
    ];
    expected.sort();
    assert_eq!(left(&totals), expected);
    assert_eq!(header.begins_ns, Some(1_700_000_000_090_000_000));
    assert!(header.is_without(Lack::Connections) && header.is_without(Lack::ReplyTimes));
    assert_eq!((header.protocol, header.source.as_str()), (RecordedProtocol::Mongodb, "mongodb-profile"));
}

#[test]
fn lines_of_json_are_the_same_as_documents() {
    let line = concat!(
        r#"{"op":"query","ns":"t.c","command":{"find":"c","filter":{"i":{"$numberLong":"7"},"#,
        r#""o":{"$oid":"0123456789abcdef01234567"},"d":{"$date":"2026-11-30T07:20:56.887Z"},"#,
        r#""e":{"$date":{"$numberLong":"-5"}},"b":{"$binary":{"base64":"AQI=","subType":"00"}},"#,
        r#""v":{"$binary":"AQI=","$type":"00"},"x":{"$gt":1.5,"$lt":9},"r":{"$regex":"a","$options":"i"},"#,
        r#""s":{"$regularExpression":{"pattern":"a","options":"i"}},"t":{"$timestamp":{"t":5,"i":7}},"#,
        r#""u":{"$uuid":"00112233-4455-6677-8899-aabbccddeeff"},"n":null,"k":{"$maxKey":1},"#,
        r#""f":{"$numberDouble":"Infinity"},"l":[1,{"$numberInt":"2"}]},"$db":"t"},"nreturned":3,"#,
        r#""millis":0,"ts":{"$date":"2026-11-30T07:20:57Z"}}"#,
        "\nnonsense\n\n{\"op\":\"query\",\"ns\":\"t.c\",\"command\":{\"find\":{\"$oid\":\"1\"}}}\n",
    );
    assert!(is_profile(line.as_bytes()));
    let (all, totals, _) = recorded(|new| record_profile(&mut line.as_bytes(), new));
    let expected = concat!(
        "0 0 find t: find=c filter={i=7:12 o=[1, 35, 69, 103, 137, 171, 205, 239, 1, 35, 69, 103]:7 ",
        "d=1796023256887:9 e=-5:9 b=[2, 0, 0, 0, 0, 1, 2]:5 v=[2, 0, 0, 0, 0, 1, 2]:5 x={$gt=1.5:1 $lt=9:10} ",
        "r={$regex=a $options=i} s=[97, 0, 105, 0]:b t=[7, 0, 0, 0, 5, 0, 0, 0]:11 ",
        "u=[16, 0, 0, 0, 4, 0, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204, 221, 238, 255]:5 ",
        "n=[]:a k=[]:7f f=inf:1 l={0=1:10 1=2:10}} -> array 3"
    );
    assert_eq!(shown(&all), [expected]);
    assert_eq!(left(&totals), [(reason::CUT, 2)]);
    for wrong in
        ["[]", "{", "{\"a\":{\"$oid\":\"12\"}}", "{\"a\\u0000\":1}", "{\"a\":{\"$numberInt\":\"x\"}}"]
    {
        assert!(read_line(wrong.as_bytes(), JsonOf::Commands).is_err(), "{wrong}");
    }
    assert!(read_line(("{\"a\":".repeat(130) + &"}".repeat(130)).as_bytes(), JsonOf::Commands).is_err());
}

#[test]
fn lines_of_a_log_from_before_4_4_are_read() {
    let long = "q".repeat(150);
    let line = |component: &str, thread: &str, at: u32, message: &str| {
        format!("2026-11-30T07:20:56.{at:03}+0000 I {component:8} [{thread}] {message}\n")
    };
    let text = [
        line("CONTROL", "initandlisten", 0, "MongoDB starting : pid=1 port=27017"),
        line(
            "COMMAND",
            "conn7",
            500,
            concat!(
                r#"command t.c command: find { find: "c", filter: { x: { $gt: 1.5 } }, batchSize: 5, $db: "t" } "#,
                r#"planSummary: COLLSCAN cursorid:7 keysExamined:0 nreturned:5 reslen:261 locks:{ Global: { "#,
                r#"acquireCount: { r: 2 } } } protocol:op_msg 100ms"#
            ),
        ),
        line(
            "COMMAND",
            "conn8",
            501,
            concat!(
                r#"command t.c appName: "my app" command: getMore { getMore: 7, collection: "c", $db: "t" } "#,
                r#"originatingCommand: { find: "nreturned:9 x", $db: "t" } cursorid:7 cursorExhausted:1 "#,
                r#"nreturned:2 reslen:223 protocol:op_msg 3ms"#
            ),
        ),
        line(
            "WRITE",
            "conn7",
            600,
            concat!(
                r#"update t.c command: { q: { _id: ObjectId('0123456789abcdef01234567') }, u: { $set: { t: "he "#,
                r#"said "hi" loud", d: new Date(-5), n: null, b: BinData(0, 6162), e: [ 1, {}, [] ], f: "#,
                r#"Timestamp(5, 7), g: /a.b/i, h: -3, k: MaxKey, o: true } }, multi: false, upsert: true } "#,
                r#"planSummary: IDHACK nMatched:0 nModified:0 upsert:1 numYields:0 1ms"#
            ),
        ),
        line(
            "COMMAND",
            "conn7",
            600,
            r#"command t.$cmd command: update { update: "c", updates: 2, $db: "t" } numYields:0 reslen:44 protocol:op_msg 1ms"#,
        ),
        line(
            "WRITE",
            "conn7",
            601,
            "remove t.c command: { q: { a: 2.0 }, limit: 0 } planSummary: COLLSCAN ndeleted:4 0ms",
        ),
        line(
            "COMMAND",
            "conn8",
            602,
            concat!(
                r#"command t.c command: insert { insert: "c", documents: [ { _id: 1000 } ], $db: "t" } "#,
                r#"ninserted:0 exception: E11000 duplicate key error dup key: { : 1000 } code:DuplicateKey "#,
                r#"numYields:0 reslen:163 protocol:op_msg 1ms"#
            ),
        ),
        line(
            "COMMAND",
            "conn8",
            603,
            r#"command t.c command: insert { insert: "c", ordered: true, $db: "t" } ninserted:300 reslen:29 protocol:op_msg 4ms"#,
        ),
        line(
            "COMMAND",
            "conn8",
            604,
            &format!(
                r#"command t.c command: find {{ find: "c", filter: {{ s: "{long}..." }}, $db: "t" }} nreturned:0 0ms"#
            ),
        ),
        line("COMMAND", "conn8", 605, r#"command t.c command: count { count: "c", q: a+b } reslen:2 0ms"#),
        line(
            "COMMAND",
            "ftdc",
            606,
            r#"command local.oplog command: collStats { collStats: "o", $db: "local" } reslen:2 0ms"#,
        ),
        line("COMMAND", "initandlisten", 607, "setting featureCompatibilityVersion to 3.6"),
    ];
    assert!(text.iter().all(|line| is_mongod_log(line.trim_end().as_bytes())));
    assert!(!is_mongod_log(b"1339518083.107412 [0 127.0.0.1:60866] \"SET\"") && !is_mongod_log(b""));
    let (all, totals, header) = recorded(|new| record_mongod_log(&mut text.concat().as_bytes(), new));
    assert_eq!(
        shown(&all),
        [
            "0 0 find t: find=c filter={x={$gt=1.5:1}} batchSize=5:10 -> array 5",
            "98 1 getMore t: getMore=7:12 collection=c _openedBy={connection=0:10 command=0:12} -> array 2",
            concat!(
                "199 0 update t: update=c updates={0={q={_id=[1, 35, 69, 103, 137, 171, 205, 239, 1, 35, 69, 103]:7} ",
                "u={$set={t=he said \"hi\" loud d=-5:9 n=[]:a b=[2, 0, 0, 0, 0, 97, 98]:5 e={0=1:10 1={} 2={}} ",
                "f=[7, 0, 0, 0, 5, 0, 0, 0]:11 g=[97, 46, 98, 0, 105, 0]:b h=-3:10 k=[]:7f o=1:8}} multi=0:8 ",
                "upsert=1:8}} -> status 1"
            ),
            "201 0 delete t: delete=c deletes={0={q={a=2:1} limit=0:10}} -> status 4",
            "201 1 insert t: insert=c documents={0={_id=1000:10}} -> error 11000"
        ]
    );
    let mut expected = vec![
        (reason::OTHER_LINES, 2),
        (reason::WHOLES, 1),
        (reason::INSERTS, 1),
        (reason::CUT, 2),
        (reason::OWN, 1),
    ];
    expected.sort();
    assert_eq!(left(&totals), expected);
    assert!(!header.is_without(Lack::Connections) && header.is_without(Lack::QuickCommands));
    for wrong in
        ["{ a: 1", "{ a: \"x }", "{a: 1}", "{ a: ObjectId('12') }", "{ a: BinData(0, 6...) }", "", "[]"]
    {
        assert!(read_shell_document(wrong).is_none(), "{wrong}");
    }
    assert!(read_shell_document(&("{ a: ".repeat(300) + &" }".repeat(300))).is_none());
}

#[test]
fn lines_of_a_log_of_4_4_are_read() {
    const CUT: &str = r#","truncated":{"command":{}},"size":{"command":12345}"#;
    let line = |at: u32, thread: &str, attributes: &str, more: &str| {
        let head = format!(r#"{{"t":{{"$date":"2026-11-30T07:20:56.{at:03}+00:00"}},"s":"I","c":"COMMAND""#);
        head + &format!(r#","id":51803,"ctx":"{thread}","msg":"Slow query","attr":{{{attributes}}}{more}}}"#)
            + "\n"
    };
    let text = [
        concat!(
                r#"{"t":{"$date":"2026-11-30T07:20:50.000+00:00"},"s":"I","c":"CONTROL","id":4615611,"ctx":"main","#,
                r#""msg":"MongoDB starting","attr":{"pid":1}}"#).to_owned() + "\n",
        line(500, "conn7", concat!(
                r#""type":"command","ns":"t.c","command":{"find":"c","filter":{"x":{"$gt":1.5}},"#,
                r#""lsid":{"id":{"$uuid":"00112233-4455-6677-8899-aabbccddeeff"}},"$clusterTime":{"a":1},"#,
                r#""$db":"t"},"cursorid":7,"nreturned":5,"durationMillis":100"#), ""),
        line(501, "conn8", concat!(
                r#""type":"command","ns":"t.c","command":{"getMore":7,"collection":"c","$db":"t"},"cursorid":7,"#,
                r#""cursorExhausted":true,"nreturned":2,"durationMillis":3"#), ""),
        line(600, "conn7", concat!(
                r#""type":"update","ns":"t.c","command":{"q":{"_id":1},"u":{"$set":{"a":1}},"multi":false,"#,
                r#""upsert":false},"nMatched":1,"durationMillis":1"#), ""),
        line(601, "conn7", concat!(
                r#""type":"command","ns":"t.$cmd","command":{"update":"c","ordered":true,"$db":"t"},"#,
                r#""durationMillis":1"#), ""),
        line(602, "conn7", concat!(
                r#""type":"command","ns":"t.c","command":{"find":"c","filter":{"$nope":1},"$db":"t"},"ok":0,"#,
                r#""errMsg":"no","errName":"BadValue","errCode":2,"durationMillis":1"#), ""),
        line(603, "conn7", r#""type":"command","ns":"t.c","command":{"find":"c"},"durationMillis":1"#, CUT),
        line(604, "conn9", r#""type":"command","ns":"admin.$cmd","command":{"hello":1,"$db":"admin"},"durationMillis":1"#, ""),
    ];
    assert!(text.iter().all(|line| is_mongod_log(line.trim_end().as_bytes())));
    let (all, totals, _) = recorded(|new| record_mongod_log(&mut text.concat().as_bytes(), new));
    let session = "lsid={id=[16, 0, 0, 0, 4, 0, 17, 34, 51, 68, 85, 102, 119, 136, 153, 170, 187, 204, 221, 238, 255]:5}";
    assert_eq!(
        shown(&all),
        [
            format!("0 0 find t: find=c filter={{x={{$gt=1.5:1}}}} {session} -> array 5"),
            "98 1 getMore t: getMore=7:12 collection=c _openedBy={connection=0:10 command=0:12} -> array 2".into(),
            "199 0 update t: update=c updates={0={q={_id=1:10} u={$set={a=1:10}} multi=0:8 upsert=0:8}} -> status 1"
                .into(),
            "201 0 find t: find=c filter={$nope=1:10} -> error BadValue".into()
        ]
    );
    let mut expected =
        vec![(reason::OTHER_LINES, 1), (reason::WHOLES, 1), (reason::CUT, 1), (reason::CHECKS, 1)];
    expected.sort();
    assert_eq!(left(&totals), expected);
}
