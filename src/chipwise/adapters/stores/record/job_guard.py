"""What a trigger lets whom write of a job, in PostgreSQL. Members submit new ones and say what they want of their own; whoever
acts for a place says what becomes of those there.

A member's new job is as submit writes it, for a place that is open to them; the policy on the rows refuses as well, and this
says what is missing. An old job changes in what is wanted of it, and starts again when it is over. A row that is damaged can be
written only by its controller, who mends it, and by an admin.

What a job was submitted with stays as it is: a client or a controller that knows fewer fields than were submitted writes what
it knows, and the rest is put back. What no job can be (`spec_fault`) does not come in.
"""

from __future__ import annotations

import json

from chipwise.runner.writing import DEEPEST, LARGEST_COUNT, LARGEST_NUMBER

REFUSED = "USING ERRCODE = '42501'"

_KINDS = {
    "text": "name engine place folder owner team project checkpoints health workload pipeline",
    "texts": "command after produces recover",
    "settings": "env secrets labels",
    "mapping": "needs retry predicted work",
    "list": "places objects",
    "truth": "service",
    "whole": "priority",
    "count": "needs.gpus needs.cpus needs.machines needs.processes retry.failures retry.kills retry.same_step retry.losses",
    "least": "needs.gpus_least needs.machines_least",
    "seconds": "grace_s retry.wait_s retry.longest_wait_s retry.no_machine_s retry.grow_after_s",
    "amount": "longest_s expected_s budget_usd interruptions_per_hour",
}
_FIELDS = json.dumps({field: kind for kind, fields in _KINDS.items() for field in fields.split()})
_LARGEST = f"{LARGEST_NUMBER:.0f}"
MOST = 100_000  # processes, devices or machines of one job

# What of a specification no job can have; NULL: nothing. Fields that are not known here may hold anything within bounds.
SPEC_FAULT = f"""CREATE OR REPLACE FUNCTION spec_fault(spec jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
    DECLARE field text; value jsonb; kind text; shape text; number numeric; fits boolean;
    BEGIN
      IF jsonb_typeof(spec) IS DISTINCT FROM 'object' THEN RETURN 'a specification that is no mapping'; END IF;
      IF jsonb_path_exists(spec, 'strict $.**{{{DEEPEST + 2} to last}} ? (@.type() == "object" || @.type() == "array")') THEN
        RETURN 'more than {DEEPEST} mappings or lists within each other';
      END IF;
      IF jsonb_path_exists(spec, 'strict $.** ? (@.type() == "number" && (@ > {_LARGEST} || @ < -{_LARGEST}))') THEN
        RETURN 'a number beyond {LARGEST_NUMBER:g}';
      END IF;
      FOR field, value IN SELECT s.key, s.value FROM jsonb_each(spec) AS s
        UNION ALL SELECT p.key || '.' || f.key, f.value FROM jsonb_each(spec) AS p
          CROSS JOIN LATERAL jsonb_each(CASE jsonb_typeof(p.value) WHEN 'object' THEN p.value ELSE '{{}}' END) AS f
          WHERE p.key IN ('needs', 'retry') LOOP
        kind := '{_FIELDS}'::jsonb ->> field;
        CONTINUE WHEN kind IS NULL;
        shape := jsonb_typeof(value); number := CASE shape WHEN 'number' THEN value::numeric END;
        fits := CASE kind
          WHEN 'text' THEN shape = 'string'
          WHEN 'texts' THEN shape = 'array' AND NOT jsonb_path_exists(value, 'strict $[*] ? (@.type() != "string")')
          WHEN 'settings' THEN shape = 'object' AND NOT jsonb_path_exists(value, 'strict $.* ? (@.type() != "string")')
          WHEN 'mapping' THEN shape = 'object'
          WHEN 'list' THEN shape = 'array'
          WHEN 'truth' THEN shape = 'boolean'
          WHEN 'whole' THEN abs(number) <= {LARGEST_COUNT} AND number = trunc(number)
          WHEN 'count' THEN number BETWEEN 0 AND {MOST} AND number = trunc(number)
          WHEN 'least' THEN shape = 'null' OR number BETWEEN 0 AND {MOST} AND number = trunc(number)
          WHEN 'seconds' THEN number >= 0
          WHEN 'amount' THEN shape = 'null' OR number >= 0
        END;
        IF fits IS NOT TRUE THEN RETURN format('%s: %s', field, left(value::text, 80)); END IF;
      END LOOP;
      RETURN NULL;
    END $$"""

JOB_GUARD = f"""CREATE OR REPLACE FUNCTION guard_job() RETURNS trigger LANGUAGE plpgsql
    SET search_path = chipwise, pg_temp AS $$
    DECLARE held jsonb; spec jsonb; was jsonb; free text[] := ARRAY['version', 'wish'];
    BEGIN
      IF sees_all(current_user::text) THEN RETURN NEW; END IF;
      IF TG_OP = 'INSERT' AND (NEW.id IN ('', '.', '..') OR length(NEW.id) > 500
         OR NEW.id ~ '^-|[\\u0001-\\u001f\\u007f-\\u009f/]') THEN
        RAISE EXCEPTION '% cannot be the id of a job', quote_literal(left(NEW.id, 80)) USING ERRCODE = '23514';
      END IF;
      held := NEW.body::jsonb; spec := held -> 'spec';
      IF held ->> 'id' IS DISTINCT FROM NEW.id OR (held ->> 'version')::bigint IS DISTINCT FROM NEW.version
         OR NEW.mark > (SELECT value FROM meta WHERE name = 'mark') THEN
        RAISE EXCEPTION 'the columns of job % do not say what is in it', NEW.id {REFUSED};
      END IF;
      IF TG_OP = 'INSERT' THEN
        IF NOT may_submit(current_user::text, NEW.place) THEN
          RAISE EXCEPTION '% may not run jobs at %', current_user, NEW.place {REFUSED}, HINT = format(
            'Its controller can allow it: chipwise places allow %s --user %s. Of a machine of your own an admin makes you the '
            'controller: chipwise members add %s --role controller --place %s.',
            quote_literal(NEW.place), current_user, current_user, quote_literal(NEW.place));
        END IF;
        IF held - ARRAY['id', 'spec', 'submitted', 'version'] <> '{{}}' OR NEW.version <> 1 OR NEW.phase <> 'queued'
           OR NEW.attempts <> 0 OR NEW.begun IS NOT NULL OR NEW.ended IS NOT NULL THEN
          RAISE EXCEPTION 'job % is not a new one', NEW.id {REFUSED};
        END IF;
        IF spec_fault(spec) IS NOT NULL THEN
          RAISE EXCEPTION '% cannot be in a job', spec_fault(spec) USING ERRCODE = '23514';
        END IF;
        IF (coalesce(spec ->> 'owner', ''), coalesce(spec ->> 'team', ''), coalesce(spec ->> 'place', ''),
            coalesce(spec ->> 'engine', 'local'), coalesce((spec ->> 'priority')::bigint, 0))
           IS DISTINCT FROM (NEW.owner, NEW.team, NEW.place, NEW.engine, NEW.priority) THEN
          RAISE EXCEPTION 'the columns of job % do not say what is in it', NEW.id {REFUSED};
        END IF;
        RETURN NEW;
      END IF;
      BEGIN was := OLD.body::jsonb; EXCEPTION WHEN data_exception THEN was := NULL; END;
      IF jsonb_typeof(was -> 'spec') IS DISTINCT FROM 'object' THEN
        IF acts_for(current_user::text, OLD.place) AND NEW.version > OLD.version THEN RETURN NEW; END IF;
        RAISE EXCEPTION 'the row of job % is damaged, which only its controller or an admin can repair', NEW.id {REFUSED};
      END IF;
      IF spec IS DISTINCT FROM was -> 'spec' AND (was -> 'spec' @> spec OR acts_for(current_user::text, OLD.place)) THEN
        held := held || jsonb_build_object('spec', was -> 'spec');  -- whoever wrote knows fewer fields
        spec := was -> 'spec'; NEW.body := held::text;
      END IF;
      IF spec IS DISTINCT FROM was -> 'spec' OR NEW.version NOT BETWEEN OLD.version + 1 AND OLD.version + 10000 THEN
        RAISE EXCEPTION 'what job % was submitted with never changes', NEW.id {REFUSED};
      END IF;
      IF acts_for(current_user::text, OLD.place) THEN RETURN NEW; END IF;
      IF OLD.phase IN ('done', 'failed', 'stopped') AND NEW.phase = 'queued' AND NOT held ? 'phase'
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
