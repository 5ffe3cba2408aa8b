-- One row a patient from an OMOP CDM v5 database, for `query_file` of site.toml:
--
--     [source]
--     kind = "postgres"
--     query_file = "one-row-a-patient.sql"
--     parameters = { schema = "cdm", index_date = "2020-01-01", history_days = "730" }
--     patient = "person_id"
--
-- Parameters stand in double braces and are letters, digits and `_ - . : ,` and blanks only.
--     schema        the schema of the CDM tables
--     index_date    what happened on this day or later is not looked at
--     history_days  how many days before the index date are looked at
--
-- Every patient gives one row, whatever was recorded:
--     a measurement   its last value before the index date; NULL where there is none.
--                     Of several on one day, the one entered last (the highest measurement_id).
--     a condition     1 where it was recorded in the window, else 0: absence of a record is read
--                     as absence of the condition.
-- Take the concepts from your own vocabulary, and add a column for each. A value counts only in the
-- unit that its line names, for one laboratory can report two: declare the same unit in site.toml.
WITH
measured AS (
    SELECT DISTINCT ON (person_id, measurement_concept_id)
        person_id,
        measurement_concept_id,
        value_as_number
    FROM {{schema}}.measurement
    WHERE value_as_number IS NOT NULL
        AND measurement_date < DATE '{{index_date}}'
        AND measurement_date >= DATE '{{index_date}}' - {{history_days}}
        AND (measurement_concept_id, unit_concept_id) IN (
            (3027114, 8840),  -- total cholesterol in serum or plasma, mg/dl
            (3004249, 8876)   -- systolic blood pressure, mm Hg
        )
    ORDER BY person_id, measurement_concept_id, measurement_date DESC, measurement_id DESC
),
conditions AS (
    SELECT DISTINCT person_id, condition_concept_id
    FROM {{schema}}.condition_occurrence
    WHERE condition_start_date < DATE '{{index_date}}'
        AND condition_start_date >= DATE '{{index_date}}' - {{history_days}}
        AND condition_concept_id IN (
            201826,  -- type 2 diabetes mellitus
            317576   -- coronary arteriosclerosis
        )
)
SELECT
    person.person_id,
    make_date(
        person.year_of_birth,
        coalesce(person.month_of_birth, 7),
        coalesce(person.day_of_birth, 1)
    ) AS born,
    CASE person.gender_concept_id WHEN 8507 THEN 'male' WHEN 8532 THEN 'female' END AS sex,
    max(measured.value_as_number) FILTER (WHERE measured.measurement_concept_id = 3027114)
        AS cholesterol,
    max(measured.value_as_number) FILTER (WHERE measured.measurement_concept_id = 3004249)
        AS systolic,
    (count(*) FILTER (WHERE conditions.condition_concept_id = 201826) > 0)::integer AS diabetes,
    (count(*) FILTER (WHERE conditions.condition_concept_id = 317576) > 0)::integer
        AS coronary_disease
FROM {{schema}}.person
LEFT JOIN measured USING (person_id)
LEFT JOIN conditions USING (person_id)
GROUP BY person.person_id, person.year_of_birth, person.month_of_birth, person.day_of_birth,
    person.gender_concept_id
ORDER BY person.person_id
