"""What a trigger lets whom write of a job, in PostgreSQL. Members submit new ones and say what they want of their own; whoever
acts for a place says what becomes of those there.

A member's new job is as submit writes it, for a place that is open to them; the policy on the rows refuses as well, and this
says what is missing. An old job changes in what is wanted of it, and starts again when it is over. A row that is damaged can be
written only by its controller, who mends it, and by an admin.

What a job was submitted with stays as it is: a client or a controller that knows fewer fields than were submitted writes what
it knows, and the rest is put back. What no job can be (`spec_fault`) does not come in. What a member writes is kept as the
server read it, so that a controller reads the same. A new phase, wish, move or way of buying needs a migration with these anew.
"""

from __future__ import annotations

import json

from chipwise.catalog.offer import Purchase
from chipwise.runner.bounds import LONGEST_JOB, MOST_ELEMENTS, MOST_LOOKED_FOR, MOST_LOSSES, MOST_PRIORITY, MOST_TRIES
from chipwise.runner.job import MOST_PROCESSES, Move, Wish
from chipwise.runner.permits import RESERVED
from chipwise.runner.writing import DEEPEST, LARGEST_NUMBER, LAST_MOMENT

REFUSED = "USING ERRCODE = '42501'"

_KINDS = {
    "text": "name engine place folder owner team project checkpoints health workload pipeline "
    "work.unit places.provider places.region places.zone places.machine",
    "texts": "command",
    "few texts": "after produces",
    "settings": "env secrets labels",
    "mapping": "needs retry predicted work",
    "mappings": "places objects",
    "moves": "recover",
    "purchase": "places.purchase",
    "truth": "service",
    "priority": "priority",
    "processes": "needs.processes",
    "count": "needs.gpus needs.cpus needs.machines",
    "tries": "retry.failures retry.kills retry.same_step",
    "losses": "retry.losses",
    "least": "needs.gpus_least needs.machines_least",
    "seconds": "grace_s retry.wait_s retry.longest_wait_s retry.no_machine_s retry.grow_after_s",
    "amount": "longest_s expected_s budget_usd interruptions_per_hour deadline work.amount work.per_step places.usd_per_hour",
}
_FIELDS = json.dumps({field: kind for kind, fields in _KINDS.items() for field in fields.split()})
_LARGEST = f"{LARGEST_NUMBER:.0f}"
_MOVES, _PURCHASES = (json.dumps([one.value for one in kind]) for kind in (Move, Purchase))
WISHES = ", ".join(f"'{one.value}'" for one in Wish)
_MOMENT = f"BETWEEN 0 AND {LAST_MOMENT}"
LONGEST_WISH = 10_000  # characters, with its reason
MOST_DEVICES = 100_000  # devices or machines of one job

# What of a specification no job can have; NULL: nothing. Fields that are not known here may hold anything within bounds.
SPEC_FAULT = f"""CREATE OR REPLACE FUNCTION spec_fault(spec jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
    DECLARE field text; value jsonb; kind text; shape text; number numeric; fits boolean;
    BEGIN
      IF jsonb_typeof(spec) IS DISTINCT FROM 'object' THEN RETURN 'a specification that is no mapping'; END IF;
      IF jsonb_path_exists(spec, 'strict $.**{{{DEEPEST + 1} to last}} ? (@.type() == "object" || @.type() == "array")') THEN
        RETURN 'more than {DEEPEST} mappings or lists within each other';
      END IF;
      IF jsonb_path_exists(spec, 'strict $.** ? (@.type() == "number" && (@ > {_LARGEST} || @ < -{_LARGEST}))') THEN
        RETURN 'a number beyond {LARGEST_NUMBER:g}';
      END IF;
      IF jsonb_path_exists(spec, 'strict $.** ? (@.type() == "array" && @.size() > {MOST_ELEMENTS})') THEN
        RETURN 'a list of more than {MOST_ELEMENTS} elements';
      END IF;
      FOR field, value IN SELECT s.key, s.value FROM jsonb_each(spec) AS s
        UNION ALL SELECT p.key || '.' || f.key, f.value FROM jsonb_each(spec) AS p
          CROSS JOIN LATERAL jsonb_each(CASE jsonb_typeof(p.value) WHEN 'object' THEN p.value ELSE '{{}}' END) AS f
          WHERE p.key IN ('needs', 'retry', 'work')
        UNION ALL SELECT 'places.' || f.key, f.value FROM jsonb_path_query(spec, 'lax $.places[*]') AS p
          CROSS JOIN LATERAL jsonb_each(CASE jsonb_typeof(p) WHEN 'object' THEN p ELSE '{{}}' END) AS f LOOP
        kind := '{_FIELDS}'::jsonb ->> field;
        CONTINUE WHEN kind IS NULL;
        shape := jsonb_typeof(value); number := CASE shape WHEN 'number' THEN value::numeric END;
        fits := CASE kind
          WHEN 'text' THEN shape = 'string'
          WHEN 'texts' THEN shape = 'array' AND NOT jsonb_path_exists(value, 'strict $[*] ? (@.type() != "string")')
          WHEN 'few texts' THEN shape = 'array' AND NOT jsonb_path_exists(value, 'strict $[*] ? (@.type() != "string")')
            AND jsonb_array_length(value) <= {MOST_LOOKED_FOR}
          WHEN 'settings' THEN shape = 'object' AND NOT jsonb_path_exists(value, 'strict $.* ? (@.type() != "string")')
            AND (SELECT count(*) FROM jsonb_object_keys(value)) <= {MOST_ELEMENTS}
          WHEN 'mapping' THEN shape = 'object'
          WHEN 'mappings' THEN shape = 'array' AND NOT jsonb_path_exists(value, 'strict $[*] ? (@.type() != "object")')
          WHEN 'moves' THEN shape = 'array' AND value <@ '{_MOVES}'
          WHEN 'purchase' THEN shape = 'string' AND '{_PURCHASES}' @> value
          WHEN 'truth' THEN shape = 'boolean'
          WHEN 'priority' THEN abs(number) <= {MOST_PRIORITY} AND scale(number) = 0
          WHEN 'processes' THEN number BETWEEN 1 AND {MOST_PROCESSES} AND scale(number) = 0
          WHEN 'count' THEN number BETWEEN 0 AND {MOST_DEVICES} AND scale(number) = 0
          WHEN 'tries' THEN number BETWEEN 0 AND {MOST_TRIES} AND scale(number) = 0
          WHEN 'losses' THEN number BETWEEN 0 AND {MOST_LOSSES} AND scale(number) = 0
          WHEN 'least' THEN shape = 'null' OR number BETWEEN 0 AND {MOST_DEVICES} AND scale(number) = 0
          WHEN 'seconds' THEN number >= 0
          WHEN 'amount' THEN shape = 'null' OR number >= 0
        END;
        IF fits IS NOT TRUE THEN RETURN format('%s: %s', field, left(value::text, 80)); END IF;
      END LOOP;
      RETURN NULL;
    END $$"""

# Whether one value is the other without some of its fields. Not by `@>`, which compares each element of a list with each of the
# other, and cannot be interrupted: lists are compared in their order.
HAS_FEWER_FIELDS = """CREATE OR REPLACE FUNCTION has_fewer_fields(part jsonb, whole jsonb) RETURNS boolean LANGUAGE plpgsql
    IMMUTABLE SET search_path = chipwise, pg_temp AS $$
    BEGIN
      IF part = whole THEN RETURN true; END IF;
      IF jsonb_typeof(part) = 'object' AND jsonb_typeof(whole) = 'object' THEN
        RETURN NOT EXISTS (SELECT 1 FROM jsonb_each(part) AS p
          WHERE (CASE WHEN whole ? p.key THEN has_fewer_fields(p.value, whole -> p.key) END) IS NOT TRUE);
      ELSIF jsonb_typeof(part) = 'array' AND jsonb_typeof(whole) = 'array' THEN
        RETURN jsonb_array_length(part) = jsonb_array_length(whole) AND NOT EXISTS (
          SELECT 1 FROM ROWS FROM (jsonb_array_elements(part), jsonb_array_elements(whole)) AS e (p, w)
          WHERE has_fewer_fields(p, w) IS NOT TRUE);
      END IF;
      RETURN false;
    END $$"""

JOB_GUARD = f"""CREATE OR REPLACE FUNCTION guard_job() RETURNS trigger LANGUAGE plpgsql
    SET search_path = chipwise, pg_temp AS $$
    DECLARE held jsonb; spec jsonb; was jsonb; free text[] := ARRAY['version', 'wish'];
    BEGIN
      IF sees_all(current_user::text) THEN RETURN NEW; END IF;
      IF TG_OP = 'INSERT' AND (NEW.id = '' OR lower(NEW.id) IN ({", ".join(map(repr, RESERVED))}) OR length(NEW.id) > 500
         OR NEW.id ~ '^[-.]|[\\u0001-\\u001f\\u007f-\\u009f/]') THEN
        RAISE EXCEPTION '% cannot be the id of a job', quote_literal(left(NEW.id, 80)) USING ERRCODE = '23514';
      END IF;
      IF TG_OP = 'INSERT' AND length(NEW.body) > {LONGEST_JOB} THEN
        RAISE EXCEPTION 'job % has % characters, and may have {LONGEST_JOB}', NEW.id, length(NEW.body) USING ERRCODE = '23514';
      END IF;
      held := NEW.body::jsonb; spec := held -> 'spec';
      IF held ->> 'id' IS DISTINCT FROM NEW.id OR (held ->> 'version')::bigint IS DISTINCT FROM NEW.version THEN
        RAISE EXCEPTION 'the columns of job % do not say what is in it', NEW.id {REFUSED};
      END IF;
      IF TG_OP = 'INSERT' THEN
        IF NOT may_submit(current_user::text, NEW.place) THEN
          RAISE EXCEPTION '% may not run jobs at %', current_user, NEW.place {REFUSED}, HINT = format(
            'Its controller can allow it: chipwise places allow %s --user %s. Of a machine of your own an admin makes you the '
            'controller: chipwise members add %s --role controller --place %s.',
            quote_literal(NEW.place), current_user, current_user, quote_literal(NEW.place));
        END IF;
        IF jsonb_typeof(held -> 'submitted') IS DISTINCT FROM 'number' OR (held ->> 'submitted')::numeric NOT {_MOMENT} THEN
          RAISE EXCEPTION '% is no time at which a job was submitted', left(held ->> 'submitted', 80) USING ERRCODE = '23514';
        END IF;
        IF held - ARRAY['id', 'spec', 'submitted', 'version'] <> '{{}}' OR NEW.version <> 1 OR NEW.phase <> 'queued'
           OR NEW.attempts <> 0 OR NEW.begun IS NOT NULL OR NEW.ended IS NOT NULL THEN
          RAISE EXCEPTION 'job % is not a new one', NEW.id {REFUSED};
        END IF;
        IF spec_fault(spec) IS NOT NULL THEN
          RAISE EXCEPTION '% cannot be in a job', spec_fault(spec) USING ERRCODE = '23514';
        END IF;
        IF (coalesce(spec ->> 'owner', ''), coalesce(spec ->> 'team', ''), coalesce(spec ->> 'place', ''),
            coalesce(spec ->> 'engine', 'local'), coalesce((spec ->> 'priority')::bigint, 0),
            (held ->> 'submitted')::double precision, coalesce(spec ->> 'name', ''), coalesce(spec ->> 'project', ''),
            coalesce((spec #>> '{{needs,gpus}}')::bigint, 0), coalesce((spec #>> '{{needs,cpus}}')::bigint, 1),
            coalesce((spec #>> '{{needs,machines}}')::bigint, 1), '')
           IS DISTINCT FROM (NEW.owner, NEW.team, NEW.place, NEW.engine, NEW.priority, NEW.submitted, NEW.name, NEW.project,
            NEW.gpus, NEW.cpus, NEW.machines, NEW.reason) THEN
          RAISE EXCEPTION 'the columns of job % do not say what is in it', NEW.id {REFUSED};
        END IF;
        -- By the clock of the server: it decides who came first. Jobs that are submitted together have one time.
        NEW.submitted := extract(epoch FROM greatest(now(), clock_timestamp() - interval '60 s'));
        held := held || jsonb_build_object('submitted', NEW.submitted);
        NEW.body := held::text;
        RETURN NEW;
      END IF;
      BEGIN was := OLD.body::jsonb; EXCEPTION WHEN data_exception THEN was := NULL; END;
      IF jsonb_typeof(was -> 'spec') IS DISTINCT FROM 'object' THEN
        IF acts_for(current_user::text, OLD.place) AND NEW.version > OLD.version THEN RETURN NEW; END IF;
        RAISE EXCEPTION 'the row of job % is damaged, which only its controller or an admin can repair', NEW.id {REFUSED},
          HINT = format('The controller of %s or an admin of the record runs: chipwise forget %s --damaged', OLD.place, OLD.id);
      END IF;
      IF spec IS DISTINCT FROM was -> 'spec'
         AND (acts_for(current_user::text, OLD.place) OR has_fewer_fields(spec, was -> 'spec')) THEN
        held := held || jsonb_build_object('spec', was -> 'spec');  -- whoever wrote knows fewer fields
        spec := was -> 'spec'; NEW.body := held::text;
      END IF;
      IF spec IS DISTINCT FROM was -> 'spec' OR NEW.version NOT BETWEEN OLD.version + 1 AND OLD.version + 10000 THEN
        RAISE EXCEPTION 'what job % was submitted with never changes', NEW.id {REFUSED};
      END IF;
      IF acts_for(current_user::text, OLD.place) THEN RETURN NEW; END IF;
      IF held ? 'wish' AND (jsonb_typeof(held -> 'wish') <> 'string' OR held ->> 'wish' NOT IN ({WISHES})) THEN
        RAISE EXCEPTION '% cannot be wanted of a job', left((held -> 'wish')::text, 80) USING ERRCODE = '23514';
      END IF;
      NEW.body := held::text;
      IF OLD.phase IN ('done', 'failed', 'stopped') AND NEW.phase = 'queued' AND NEW.ended IS NULL AND NEW.reason = ''
         AND NOT held ?| ARRAY['phase', 'ended', 'reason', 'waiting']
         AND jsonb_typeof(held -> 'not_before') = 'number' AND (held ->> 'not_before')::numeric {_MOMENT}
         AND coalesce((held ->> 'forgiven')::int, 0) = jsonb_array_length(coalesce(held -> 'attempts', '[]')) THEN
        free := free || ARRAY['phase', 'not_before', 'ended', 'reason', 'waiting', 'forgiven'];
      ELSIF (NEW.phase, NEW.ended, NEW.reason) IS DISTINCT FROM (OLD.phase, OLD.ended, OLD.reason) THEN
        RAISE EXCEPTION 'only a controller says what becomes of job %', NEW.id {REFUSED};
      END IF;
      IF held - free IS DISTINCT FROM was - free OR (NEW.attempts, NEW.begun) IS DISTINCT FROM (OLD.attempts, OLD.begun) THEN
        RAISE EXCEPTION 'only a controller says what becomes of job %', NEW.id {REFUSED};
      END IF;
      RETURN NEW;
    END $$"""

EVENT_GUARD = f"""CREATE OR REPLACE FUNCTION guard_event() RETURNS trigger LANGUAGE plpgsql
    SET search_path = chipwise, pg_temp AS $$
    DECLARE about jobs%ROWTYPE; held jsonb;
    BEGIN
      IF sees_all(current_user::text) THEN RETURN NEW; END IF;
      SELECT * INTO about FROM jobs WHERE id = NEW.job;
      IF NOT FOUND OR NEW.version > about.version THEN
        RAISE EXCEPTION 'job % did not change so', NEW.job {REFUSED};
      END IF;
      IF acts_for(current_user::text, about.place) THEN RETURN NEW; END IF;
      held := NEW.body::jsonb; NEW.body := held::text;
      IF NEW.kind = 'submitted' AND NEW.version = 1
         AND held = jsonb_build_object('spec', about.body::jsonb -> 'spec') THEN
        NEW.at := about.submitted;
        RETURN NEW;
      ELSIF NEW.kind <> 'wished' THEN
        RAISE EXCEPTION 'only a controller says what becomes of job %', NEW.job {REFUSED};
      ELSIF jsonb_typeof(held) <> 'object' OR coalesce(jsonb_typeof(held -> 'wish'), '') <> 'string'
         OR held ->> 'wish' NOT IN ({WISHES}) OR coalesce(jsonb_typeof(held -> 'by'), 'string') <> 'string'
         OR coalesce(jsonb_typeof(held -> 'reason'), 'string') <> 'string' OR length(NEW.body) > {LONGEST_WISH} THEN
        RAISE EXCEPTION '% cannot be wanted of a job', left(NEW.body, 80) USING ERRCODE = '23514';
      ELSIF held - ARRAY['wish', 'by', 'reason'] <> '{{}}' THEN
        RAISE EXCEPTION '% cannot be wanted of a job', left(NEW.body, 80) USING ERRCODE = '23514';
      END IF;
      RETURN NEW;
    END $$"""
