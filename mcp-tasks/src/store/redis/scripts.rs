//! What runs inside the server. Each script touches keys of one hash tag alone, which a cluster has on one node.

use std::sync::LazyLock;

use redis::Script;

/// Compares the version at the head of the record, writes, notes the lease and tells of the change.
///
/// Keys: the record, the leases of its shard. Arguments: the version expected (empty: nothing is there), the new value, its
/// time to live in milliseconds (empty: for ever), when the lease ends (empty: there is none), the task's id, the channel,
/// the message. Returns whether it wrote.
///
/// An empty string under the key is not nothing, hence the question whether the key exists. Out of memory is found by the
/// first write or not at all, so nothing is half done. Whoever may not publish can write all the same.
pub(super) static COMPARE_AND_SET: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
if ARGV[1] == '' then
  if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
elseif redis.call('GETRANGE', KEYS[1], 0, 15) ~= ARGV[1] then
  return 0
end
if ARGV[3] == '' then
  redis.call('SET', KEYS[1], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
if ARGV[4] == '' then
  redis.call('ZREM', KEYS[2], ARGV[5])
else
  redis.call('ZADD', KEYS[2], ARGV[4], ARGV[5])
end
redis.pcall('PUBLISH', ARGV[6], ARGV[7])
return 1
",
    )
});

/// Removes the record, given a version only that state of it.
///
/// Keys: the record, the leases of its shard. Arguments: the version (empty: any), the task's id, the channel, the message.
/// Returns whether something was removed.
pub(super) static REMOVE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
if ARGV[1] ~= '' and redis.call('GETRANGE', KEYS[1], 0, 15) ~= ARGV[1] then return 0 end
local removed = redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[2])
if removed == 1 then redis.pcall('PUBLISH', ARGV[3], ARGV[4]) end
return removed
",
    )
});

/// Takes leases out of the index whose tasks are gone, unless they were noted anew meanwhile.
///
/// Key: the leases of a shard. Arguments: pairs of an id and when its lease ends.
pub(super) static FORGET_LEASES: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
for at = 1, #ARGV, 2 do
  local noted = redis.call('ZSCORE', KEYS[1], ARGV[at])
  if noted and tonumber(noted) == tonumber(ARGV[at + 1]) then
    redis.call('ZREM', KEYS[1], ARGV[at])
  end
end
return 1
",
    )
});
