"""What a trigger lets whom write of a job, in PostgreSQL. Members submit new ones and say what they want of their own; whoever
acts for a place says what becomes of those there.

A member's new job is as submit writes it, for a place that is open to them; the policy on the rows refuses as well, and this
says what is missing. An old job changes in what is wanted of it, and starts again when it is over. A row that is damaged can be
written only by its controller, who mends it, and by an admin.
"""

from __future__ import annotations

REFUSED = "USING ERRCODE = '42501'"

JOB_GUARD = f"""CREATE OR REPLACE FUNCTION guard_job() RETURNS trigger LANGUAGE plpgsql
    SET search_path = chipwise, pg_temp AS $$
    DECLARE held jsonb; spec jsonb; was jsonb; free text[] := ARRAY['version', 'wish'];
    BEGIN
      IF sees_all(current_user::text) THEN RETURN NEW; END IF;
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
