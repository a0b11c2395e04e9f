-- What a schedule says. In: id. Out: the definition, or no row.
SELECT definition FROM tenure_schedules WHERE id = ?1;
