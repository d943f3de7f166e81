-- The two login roles of an installation. Run it once per database, connected to that database as a superuser:
--
--   createdb checkpoint
--   psql -d checkpoint -f deploy/roles.sql
--   psql -d checkpoint -c '\password checkpoint_owner' -c '\password checkpoint_app'
--
-- checkpoint_owner owns the database and its tables; only migrations connect as it (DATABASE_OWNER_URL).
-- checkpoint_app is what web and workers connect as (DATABASE_URL). It owns nothing, so it can neither truncate a
-- table, nor disable a trigger, nor change a rule. Running this file again changes nothing.

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'checkpoint_owner') THEN
    CREATE ROLE checkpoint_owner LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'checkpoint_app') THEN
    CREATE ROLE checkpoint_app LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
  END IF;
  EXECUTE format('ALTER DATABASE %I OWNER TO checkpoint_owner', current_database());
  -- No temporary tables for the application: one named like a real table would be found before it.
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO checkpoint_app', current_database());
END
$$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT ALL ON SCHEMA public TO checkpoint_owner;
GRANT USAGE ON SCHEMA public TO checkpoint_app;

-- Rights on tables that migrations will create. Migrations take some of them away again where the law demands it.
ALTER DEFAULT PRIVILEGES FOR ROLE checkpoint_owner IN SCHEMA public
  GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO checkpoint_app;
ALTER DEFAULT PRIVILEGES FOR ROLE checkpoint_owner IN SCHEMA public
  GRANT USAGE, SELECT ON SEQUENCES TO checkpoint_app;
