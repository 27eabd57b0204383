package storetest

// Unlisted is a query for how many rows of the listing are not as their delegations are,
// missing and needless ones included.
const Unlisted = `select (select count(*) from delegations d left join listing l on l.id = d.id where l.id is null or l.task_id <> d.task_id
	or l.parent_id <> d.parent_id or l.to_agent <> d.to_agent or l.state <> d.state or l.repository <> d.repository or l.requester <> d.requester
	or coalesce(l.usd_micros, -1) <> case when d.parent_id = '' then coalesce(d.usd_micros, -1) else -1 end or l.approval_id <> d.approval_id
	or l.created_at <> d.created_at or coalesce(l.ended_at, -1) <> coalesce(d.ended_at, -1))
	+ (select count(*) from listing l where not exists (select 1 from delegations d where d.id = l.id))`
