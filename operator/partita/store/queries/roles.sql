-- name: role_exists
SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1::text)

-- name: role_create
-- utility: DDL
-- Without a password: who may log in as it, and how, is the administrator's business.
CREATE ROLE :"role" LOGIN

-- name: role_grant_coordinator
-- utility: DDL, several statements
GRANT USAGE ON SCHEMA :"schema" TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA :"schema" TO :"role";
ALTER DEFAULT PRIVILEGES IN SCHEMA :"schema" GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :"role"

-- name: role_grant_reader
-- utility: DDL, several statements
GRANT USAGE ON SCHEMA :"schema" TO :"role";
GRANT SELECT ON ALL TABLES IN SCHEMA :"schema" TO :"role";
ALTER DEFAULT PRIVILEGES IN SCHEMA :"schema" GRANT SELECT ON TABLES TO :"role"

-- name: role_set
-- utility: DDL
-- In this database only: the role may have other uses elsewhere.
ALTER ROLE :"role" IN DATABASE :"database" SET :"option" = :'value'

-- name: role_reset
-- utility: DDL
ALTER ROLE :"role" IN DATABASE :"database" RESET :"option"

-- name: role_read_only
-- utility: DDL
ALTER ROLE :"role" IN DATABASE :"database" SET default_transaction_read_only = on
