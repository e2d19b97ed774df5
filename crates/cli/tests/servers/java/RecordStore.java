import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import redis.clients.jedis.Jedis;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/** YCSB's layout in Redis: a hash for each record, and a sorted set of keys by their hash code. */
public class RecordStore extends DB {
  private Jedis redis;

  @Override
  public void init() {
    redis = new Jedis(getProperties().getProperty("redis.host"), Integer.parseInt(getProperties().getProperty("redis.port")));
  }

  @Override
  public void cleanup() {
    redis.close();
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    redis.hmset(key, StringByteIterator.getStringMap(values));
    redis.zadd("_indices", key.hashCode(), key);
    return Status.OK;
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    redis.hmset(key, StringByteIterator.getStringMap(values));
    return Status.OK;
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    if (fields == null) {
      StringByteIterator.putAllAsByteIterators(result, redis.hgetAll(key));
    } else {
      String[] names = fields.toArray(new String[0]);
      List<String> values = redis.hmget(key, names);
      for (int i = 0; i < names.length; i++) {
        if (values.get(i) != null) {
          result.put(names[i], new StringByteIterator(values.get(i)));
        }
      }
    }
    return result.isEmpty() ? Status.NOT_FOUND : Status.OK;
  }

  @Override
  public Status delete(String table, String key) {
    return redis.del(key) == 0 && redis.zrem("_indices", key) == 0 ? Status.ERROR : Status.OK;
  }

  @Override
  public Status scan(String table, String start, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
    Iterator<String> keys = redis.zrangeByScore("_indices", start.hashCode(), Double.POSITIVE_INFINITY, 0, count).iterator();
    while (keys.hasNext()) {
      HashMap<String, ByteIterator> record = new HashMap<>();
      read(table, keys.next(), fields, record);
      result.add(record);
    }
    return Status.OK;
  }
}
