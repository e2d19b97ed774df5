//! What stands where in MongoDB's commands: names, values, options and languages.
//!
//! Only what is listed here is kept. A field or an operator that is not may hold anything, so its command is left out.

use Rule::{
    Args, Bytes, Collection, CollectionOr, Command, Condition, Data, Database, Dropped, Each, ElementFilter,
    Expression, Fields, Filter, Hint, IndexName, Locale, Matched, Named, Namespace, Path, Pipeline, Plain,
    Pulled, Pushed, Script, Update, Variables, Word,
};

/// A list of fields or operators and what is in them.
pub(super) type Table = &'static [(&'static str, Rule)];

/// What a value is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// A number, a date, true or false: it stays.
    Plain,
    /// Bytes that name nothing of the application's (ids of sessions): they stay.
    Bytes,
    /// A plain value, or one of these words, which stay.
    Word(&'static [&'static str]),
    /// What is left away.
    Dropped,
    /// A value of the application's, of any kind.
    Data,
    /// An array of what follows, or one of it.
    Each(&'static Rule),
    /// A document with some of these fields.
    Fields(Table),
    /// The same, or an expression in place of it.
    Args(Table),
    /// A document whose fields the application names.
    Named(&'static Rule),
    /// Names.
    Collection,
    Database,
    Namespace,
    IndexName,
    Path,
    Variable,
    /// The name of an index, or its fields.
    Hint,
    /// A document of variables and their expressions.
    Variables,
    /// Languages: which documents are asked for, what one field must be, what is changed, what is computed.
    Filter,
    Condition,
    /// A filter of elements of an array, whose paths begin with a variable.
    ElementFilter,
    Update,
    /// What is appended to an array, or taken from it.
    Pushed,
    Pulled,
    Expression,
    Pipeline,
    /// A collection alone, or more.
    CollectionOr(Table),
    /// What becomes of a document that is there already: a word or a pipeline.
    Matched,
    /// A command within a command.
    Command,
    /// Code, patterns and searches: the command is left out, or they stay as they are.
    Script,
    /// Words of few letters that say how something is written.
    Locale,
    Format,
    TimeZone,
}

const PLAIN: Rule = Plain;
const DATA: Rule = Data;
const EXPRESSION: Rule = Expression;
const DIRECTIONS: Rule = Word(&["hashed"]);

/// The directions of an index or a sort.
pub(super) const SORT: Rule = Named(&Args(&[("$meta", META)]));
const KEYS: Rule = Named(&DIRECTIONS);
pub(super) const META: Rule = Word(&["textScore", "indexKey", "searchScore", "searchHighlights", "recordId"]);

pub(super) const TYPES: Rule = Word(&[
    "array",
    "binData",
    "bool",
    "date",
    "dbPointer",
    "decimal",
    "double",
    "int",
    "javascript",
    "javascriptWithScope",
    "long",
    "maxKey",
    "minKey",
    "null",
    "number",
    "object",
    "objectId",
    "regex",
    "string",
    "symbol",
    "timestamp",
    "undefined",
]);

pub(super) const UNITS: Rule = Word(&[
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
]);

const COLLATION: Rule = Fields(&[
    ("locale", Locale),
    ("strength", Plain),
    ("caseLevel", Plain),
    ("caseFirst", Word(&["upper", "lower", "off"])),
    ("numericOrdering", Plain),
    ("alternate", Word(&["non-ignorable", "shifted"])),
    ("maxVariable", Word(&["punct", "space"])),
    ("backwards", Plain),
    ("normalization", Plain),
    ("version", Dropped),
]);

const SESSION: Rule =
    Fields(&[("id", Bytes), ("uid", Dropped), ("txnNumber", Plain), ("txnUUID", Bytes), ("stmtId", Plain)]);

/// What any command may have.
pub(super) const COMMON: Table = &[
    ("lsid", SESSION),
    ("txnNumber", Plain),
    ("autocommit", Plain),
    ("startTransaction", Plain),
    ("stmtId", Plain),
    ("stmtIds", Each(&PLAIN)),
    ("maxTimeMS", Plain),
    ("comment", Data),
    ("apiVersion", Word(&["1"])),
    ("apiStrict", Plain),
    ("apiDeprecationErrors", Plain),
    ("$clusterTime", Dropped),
    ("shardVersion", Dropped),
    ("databaseVersion", Dropped),
    ("clientOperationKey", Bytes),
    (
        "$readPreference",
        Fields(&[
            ("mode", Word(&["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"])),
            ("tags", Dropped),
            ("maxStalenessSeconds", Plain),
            ("hedge", Fields(&[("enabled", Plain)])),
        ]),
    ),
    (
        "readConcern",
        Fields(&[
            ("level", Word(&["local", "available", "majority", "linearizable", "snapshot"])),
            ("afterClusterTime", Plain),
            ("atClusterTime", Plain),
            ("provenance", Dropped),
        ]),
    ),
    (
        "writeConcern",
        Fields(&[
            ("w", Word(&["majority"])),
            ("j", Plain),
            ("fsync", Plain),
            ("wtimeout", Plain),
            ("provenance", Dropped),
        ]),
    ),
];

const CURSOR: Rule = Fields(&[("batchSize", Plain)]);

const UPDATE_STATEMENT: Rule = Fields(&[
    ("q", Filter),
    ("u", Update),
    ("c", Variables),
    ("upsert", Plain),
    ("multi", Plain),
    ("collation", COLLATION),
    ("arrayFilters", Each(&ElementFilter)),
    ("hint", Hint),
    ("sort", SORT),
    ("upsertSupplied", Plain),
    ("stmtId", Plain),
]);

const DELETE_STATEMENT: Rule =
    Fields(&[("q", Filter), ("limit", Plain), ("collation", COLLATION), ("hint", Hint), ("stmtId", Plain)]);

const INDEX: Rule = Fields(&[
    ("key", KEYS),
    ("name", IndexName),
    ("ns", Dropped),
    ("v", Plain),
    ("unique", Plain),
    ("background", Plain),
    ("sparse", Plain),
    ("dropDups", Plain),
    ("hidden", Plain),
    ("expireAfterSeconds", Plain),
    ("partialFilterExpression", Filter),
    ("collation", COLLATION),
]);

const BULK: Rule = Fields(&[
    ("insert", Plain),
    ("update", Plain),
    ("delete", Plain),
    ("document", Data),
    ("filter", Filter),
    ("updateMods", Update),
    ("constants", Variables),
    ("multi", Plain),
    ("upsert", Plain),
    ("collation", COLLATION),
    ("arrayFilters", Each(&ElementFilter)),
    ("hint", Hint),
    ("sort", SORT),
]);

const FIND: Table = &[
    ("find", Collection),
    ("filter", Filter),
    ("projection", Expression),
    ("sort", SORT),
    ("hint", Hint),
    ("skip", Plain),
    ("limit", Plain),
    ("ntoreturn", Plain),
    ("batchSize", Plain),
    ("singleBatch", Plain),
    ("returnKey", Plain),
    ("showRecordId", Plain),
    ("snapshot", Plain),
    ("maxScan", Plain),
    ("tailable", Plain),
    ("awaitData", Plain),
    ("oplogReplay", Plain),
    ("noCursorTimeout", Plain),
    ("allowPartialResults", Plain),
    ("allowDiskUse", Plain),
    ("min", Data),
    ("max", Data),
    ("collation", COLLATION),
    ("let", Variables),
];

const FIND_AND_MODIFY: Table = &[
    ("findAndModify", Collection),
    ("findandmodify", Collection),
    ("query", Filter),
    ("sort", SORT),
    ("remove", Plain),
    ("update", Update),
    ("new", Plain),
    ("fields", Expression),
    ("upsert", Plain),
    ("bypassDocumentValidation", Plain),
    ("collation", COLLATION),
    ("arrayFilters", Each(&ElementFilter)),
    ("hint", Hint),
    ("let", Variables),
];

const MAP_REDUCE: Table = &[
    ("mapReduce", Collection),
    ("mapreduce", Collection),
    ("map", Script),
    ("reduce", Script),
    ("finalize", Script),
    ("scope", Script),
    ("out", Script),
    ("query", Filter),
    ("sort", SORT),
    ("limit", Plain),
    ("jsMode", Plain),
    ("verbose", Plain),
    ("bypassDocumentValidation", Plain),
    ("collation", COLLATION),
];

const CREATE: Table = &[
    ("create", Collection),
    ("capped", Plain),
    ("autoIndexId", Plain),
    ("size", Plain),
    ("max", Plain),
    ("flags", Plain),
    ("temp", Plain),
    ("validator", Filter),
    ("validationLevel", Word(&["off", "strict", "moderate"])),
    ("validationAction", Word(&["error", "warn"])),
    ("viewOn", Collection),
    ("pipeline", Pipeline),
    ("collation", COLLATION),
    ("idIndex", INDEX),
    ("expireAfterSeconds", Plain),
];

const SIZES: Table = &[
    ("collStats", Collection),
    ("collstats", Collection),
    ("dbStats", Plain),
    ("dbstats", Plain),
    ("dataSize", Namespace),
    ("scale", Plain),
    ("verbose", Plain),
    ("freeStorage", Plain),
    ("estimate", Plain),
    ("keyPattern", KEYS),
    ("min", Data),
    ("max", Data),
];

const SESSIONS: Table =
    &[("endSessions", Each(&SESSION)), ("refreshSessions", Each(&SESSION)), ("killSessions", Each(&SESSION))];

const TRANSACTIONS: Table =
    &[("commitTransaction", Plain), ("abortTransaction", Plain), ("recoveryToken", Dropped)];

/// Commands that say nothing: what they may have is a number, or yes or no.
const QUESTIONS: Table = &[
    ("buildInfo", Plain),
    ("buildinfo", Plain),
    ("connPoolStats", Plain),
    ("connectionStatus", Plain),
    ("currentOp", Plain),
    ("dropDatabase", Plain),
    ("features", Plain),
    ("forgetErrors", Plain),
    ("getLastError", Plain),
    ("getlasterror", Plain),
    ("getPrevError", Plain),
    ("hostInfo", Plain),
    ("isdbgrid", Plain),
    ("listCommands", Plain),
    ("logout", Plain),
    ("ping", Plain),
    ("replSetGetStatus", Plain),
    ("resetError", Plain),
    ("serverStatus", Plain),
    ("startSession", Plain),
    ("top", Plain),
    ("whatsmyuri", Plain),
    ("$all", Plain),
    ("$ownOps", Plain),
    ("fsync", Plain),
    ("j", Plain),
    ("locks", Plain),
    ("metrics", Plain),
    ("network", Plain),
    ("repl", Plain),
    ("showPrivileges", Plain),
    ("sharding", Plain),
    ("tcmalloc", Plain),
    ("w", Word(&["majority"])),
    ("wiredTiger", Plain),
    ("wtimeout", Plain),
];

/// Commands by their names, and the fields that each may have beside [`COMMON`].
pub(super) const COMMANDS: &[(&[&str], Table)] = &[
    (&["find"], FIND),
    (
        &["insert"],
        &[
            ("insert", Collection),
            ("documents", Each(&DATA)),
            ("ordered", Plain),
            ("bypassDocumentValidation", Plain),
        ],
    ),
    (
        &["update"],
        &[
            ("update", Collection),
            ("updates", Each(&UPDATE_STATEMENT)),
            ("ordered", Plain),
            ("bypassDocumentValidation", Plain),
            ("let", Variables),
        ],
    ),
    (
        &["delete"],
        &[
            ("delete", Collection),
            ("deletes", Each(&DELETE_STATEMENT)),
            ("ordered", Plain),
            ("let", Variables),
        ],
    ),
    (&["findAndModify", "findandmodify"], FIND_AND_MODIFY),
    (
        &["aggregate"],
        &[
            ("aggregate", Collection),
            ("pipeline", Pipeline),
            ("cursor", CURSOR),
            ("explain", Plain),
            ("allowDiskUse", Plain),
            ("bypassDocumentValidation", Plain),
            ("collation", COLLATION),
            ("hint", Hint),
            ("let", Variables),
        ],
    ),
    (
        &["count"],
        &[
            ("count", Collection),
            ("query", Filter),
            ("fields", Expression),
            ("limit", Plain),
            ("skip", Plain),
            ("hint", Hint),
            ("collation", COLLATION),
        ],
    ),
    (
        &["distinct"],
        &[
            ("distinct", Collection),
            ("key", Path),
            ("query", Filter),
            ("collation", COLLATION),
            ("hint", Hint),
        ],
    ),
    (&["getMore"], &[("getMore", Plain), ("collection", Collection), ("batchSize", Plain)]),
    (&["killCursors"], &[("killCursors", Collection), ("cursors", Each(&PLAIN))]),
    (
        &["bulkWrite"],
        &[
            ("bulkWrite", Plain),
            ("ops", Each(&BULK)),
            ("nsInfo", Each(&Fields(&[("ns", Namespace)]))),
            ("ordered", Plain),
            ("errorsOnly", Plain),
            ("bypassDocumentValidation", Plain),
            ("let", Variables),
            ("cursor", CURSOR),
        ],
    ),
    (&["create"], CREATE),
    (
        &["createIndexes"],
        &[
            ("createIndexes", Collection),
            ("indexes", Each(&INDEX)),
            ("commitQuorum", Word(&["majority", "votingMembers"])),
        ],
    ),
    (&["dropIndexes"], &[("dropIndexes", Collection), ("index", Each(&Hint))]),
    (&["drop"], &[("drop", Collection)]),
    (&["renameCollection"], &[("renameCollection", Namespace), ("to", Namespace), ("dropTarget", Plain)]),
    (
        &["listCollections"],
        &[
            ("listCollections", Plain),
            (
                "filter",
                Fields(&[("name", Collection), ("type", Word(&["collection", "view", "timeseries"]))]),
            ),
            ("nameOnly", Plain),
            ("authorizedCollections", Plain),
            ("cursor", CURSOR),
        ],
    ),
    (
        &["listDatabases"],
        &[
            ("listDatabases", Plain),
            ("filter", Fields(&[("name", Database)])),
            ("nameOnly", Plain),
            ("authorizedDatabases", Plain),
        ],
    ),
    (&["listIndexes"], &[("listIndexes", Collection), ("cursor", CURSOR)]),
    (&["parallelCollectionScan"], &[("parallelCollectionScan", Collection), ("numCursors", Plain)]),
    (
        &["explain"],
        &[
            ("explain", Command),
            ("verbosity", Word(&["queryPlanner", "executionStats", "allPlansExecution"])),
        ],
    ),
    (&["mapReduce", "mapreduce"], MAP_REDUCE),
    (&["collStats", "collstats", "dbStats", "dbstats", "dataSize"], SIZES),
    (&["endSessions", "refreshSessions", "killSessions"], SESSIONS),
    (&["commitTransaction", "abortTransaction"], TRANSACTIONS),
    (
        &[
            "buildInfo",
            "buildinfo",
            "connPoolStats",
            "connectionStatus",
            "currentOp",
            "dropDatabase",
            "features",
            "forgetErrors",
            "getLastError",
            "getlasterror",
            "getPrevError",
            "hostInfo",
            "isdbgrid",
            "listCommands",
            "logout",
            "ping",
            "replSetGetStatus",
            "resetError",
            "serverStatus",
            "startSession",
            "top",
            "whatsmyuri",
        ],
        QUESTIONS,
    ),
];

/// Operators of filters, in place of a field.
pub(super) const FILTER: Table = &[
    ("$and", Each(&Filter)),
    ("$or", Each(&Filter)),
    ("$nor", Each(&Filter)),
    ("$expr", Expression),
    ("$comment", Data),
    ("$sampleRate", Plain),
    ("$alwaysTrue", Plain),
    ("$alwaysFalse", Plain),
    ("$where", Script),
    ("$text", Script),
];

/// Operators of one field of a filter.
pub(super) const CONDITION: Table = &[
    ("$eq", Data),
    ("$ne", Data),
    ("$gt", Data),
    ("$gte", Data),
    ("$lt", Data),
    ("$lte", Data),
    ("$in", Data),
    ("$nin", Data),
    ("$all", Each(&Condition)),
    ("$elemMatch", Pulled),
    ("$not", Condition),
    ("$size", Plain),
    ("$exists", Plain),
    ("$mod", Each(&PLAIN)),
    ("$type", Each(&TYPES)),
    ("$bitsAllSet", Data),
    ("$bitsAllClear", Data),
    ("$bitsAnySet", Data),
    ("$bitsAnyClear", Data),
    ("$regex", Script),
    ("$options", Script),
];

/// Operators of updates.
pub(super) const UPDATE: Table = &[
    ("$set", Named(&DATA)),
    ("$setOnInsert", Named(&DATA)),
    ("$unset", Named(&DATA)),
    ("$inc", Named(&DATA)),
    ("$mul", Named(&DATA)),
    ("$min", Named(&DATA)),
    ("$max", Named(&DATA)),
    ("$pop", Named(&DATA)),
    ("$pullAll", Named(&DATA)),
    ("$pushAll", Named(&DATA)),
    ("$push", Named(&Pushed)),
    ("$addToSet", Named(&Pushed)),
    ("$pull", Named(&Pulled)),
    ("$rename", Named(&Path)),
    ("$currentDate", Named(&Args(&[("$type", Word(&["date", "timestamp"]))]))),
    ("$bit", Named(&Fields(&[("and", Plain), ("or", Plain), ("xor", Plain)]))),
    ("$isolated", Plain),
];

/// Modifiers of what is appended to an array.
pub(super) const PUSH: Table = &[("$each", Data), ("$slice", Plain), ("$position", Plain), ("$sort", SORT)];

/// Stages of pipelines.
pub(super) const STAGES: Table = &[
    ("$match", Filter),
    ("$project", Expression),
    ("$addFields", Expression),
    ("$set", Expression),
    ("$unset", Each(&Path)),
    ("$group", Expression),
    ("$sort", SORT),
    ("$limit", Plain),
    ("$skip", Plain),
    ("$count", Path),
    ("$sample", Fields(&[("size", Plain)])),
    ("$sortByCount", Expression),
    ("$redact", Expression),
    ("$replaceRoot", Fields(&[("newRoot", Expression)])),
    ("$replaceWith", Expression),
    (
        "$unwind",
        Args(&[("path", Expression), ("includeArrayIndex", Path), ("preserveNullAndEmptyArrays", Plain)]),
    ),
    (
        "$lookup",
        Fields(&[
            ("from", Collection),
            ("localField", Path),
            ("foreignField", Path),
            ("as", Path),
            ("let", Variables),
            ("pipeline", Pipeline),
        ]),
    ),
    (
        "$graphLookup",
        Fields(&[
            ("from", Collection),
            ("startWith", Expression),
            ("connectFromField", Path),
            ("connectToField", Path),
            ("as", Path),
            ("maxDepth", Plain),
            ("depthField", Path),
            ("restrictSearchWithMatch", Filter),
        ]),
    ),
    ("$facet", Named(&Pipeline)),
    (
        "$bucket",
        Fields(&[
            ("groupBy", Expression),
            ("boundaries", Each(&EXPRESSION)),
            ("default", Expression),
            ("output", Expression),
        ]),
    ),
    (
        "$bucketAuto",
        Fields(&[
            ("groupBy", Expression),
            ("buckets", Plain),
            ("output", Expression),
            (
                "granularity",
                Word(&["R5", "R10", "R20", "R40", "R80", "1-2-5", "E6", "E12", "E24", "POWERSOF2"]),
            ),
        ]),
    ),
    ("$unionWith", CollectionOr(&[("coll", Collection), ("pipeline", Pipeline)])),
    ("$out", CollectionOr(TARGET)),
    (
        "$merge",
        CollectionOr(&[
            ("into", CollectionOr(TARGET)),
            ("on", Each(&Path)),
            ("let", Variables),
            ("whenMatched", Matched),
            ("whenNotMatched", Word(&["insert", "discard", "fail"])),
        ]),
    ),
    ("$indexStats", Fields(&[])),
    (
        "$collStats",
        Fields(&[
            ("latencyStats", Fields(&[("histograms", Plain)])),
            ("storageStats", Fields(&[("scale", Plain)])),
            ("count", Fields(&[])),
        ]),
    ),
];

/// Where a pipeline writes.
const TARGET: Table = &[("db", Database), ("coll", Collection)];

/// What becomes of a document that is there already.
pub(super) const MATCHED: &[&str] = &["replace", "keepExisting", "merge", "fail"];
