// Prints what the conformance suite found, one line for a scenario, and judges the whole.
//
//   node conformance-report.mjs RESULTS EXPECTED_FAILURES
//
// RESULTS holds `runs.tsv` (run, revision, exit status of the suite), `<revision>.list`, and a directory for each run
// with a `checks.json` for each scenario. The exit status is 0 when every run is as expected.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const [results, expectedFailures] = process.argv.slice(2);
const lines = (file) => readFileSync(join(results, file), 'utf8').split('\n');
const expected = readFileSync(expectedFailures, 'utf8')
    .split('\n')
    .flatMap((line) => line.match(/^\s*-\s*([^\s#]+)/)?.[1] ?? []);
const isExpected = (scenario, check) => expected.includes(scenario) || expected.includes(`${scenario}:${check}`);

const rows = [];
const notes = [];
const problems = [];
const seen = new Set();

for (const [run, revision, status] of lines('runs.tsv').filter(Boolean).map((line) => line.split('\t'))) {
    const listed = lines(`${revision}.list`);
    const servers = listed.slice(listed.findIndex((line) => line.startsWith('Server scenarios')) + 1);
    const end = servers.findIndex((line) => !line.startsWith('  - '));
    const required = servers.slice(0, end).map((line) => line.slice('  - '.length).trim());
    const scenarios = run.startsWith('required-') ? required : [run.slice(0, -revision.length - 1)];
    if (scenarios.length === 0) problems.push(`${run}: the suite listed no scenarios`);
    const before = problems.length;
    const directories = existsSync(join(results, run)) ? readdirSync(join(results, run)) : [];
    for (const scenario of scenarios) {
        const stamp = /^-\d{4}-\d{2}-\d{2}T[\d-]+Z$/;
        const found = directories.filter((name) => name.startsWith(`server-${scenario}`))
            .filter((name) => stamp.test(name.slice(`server-${scenario}`.length)));
        if (found.length !== 1) {
            problems.push(`${scenario} (${revision}): the suite left no result`);
            continue;
        }
        const checks = JSON.parse(readFileSync(join(results, run, found[0], 'checks.json'), 'utf8'));
        const count = (status) => checks.filter((check) => check.status === status).length;
        for (const check of checks) {
            seen.add(scenario).add(`${scenario}:${check.id}`);
            const text = `${scenario} (${revision}) ${check.id}: ${check.errorMessage ?? check.description}`;
            if (check.status === 'SKIPPED') {
                notes.push(`skipped   ${text}`);
            } else if (check.status === 'FAILURE' || check.status === 'WARNING') {
                const known = isExpected(scenario, check.id);
                (known ? notes : problems).push(`${known ? 'expected  ' : ''}${text}`);
            }
        }
        const failed = count('FAILURE') + count('WARNING');
        if (failed === 0 && expected.includes(scenario)) {
            problems.push(`${scenario} (${revision}) is an expected failure, but passes`);
        }
        for (const id of new Set(checks.map((check) => check.id))) {
            const passes = checks.every((check) => check.id !== id || check.status === 'SUCCESS');
            if (passes && expected.includes(`${scenario}:${id}`)) {
                problems.push(`${scenario}:${id} (${revision}) is an expected failure, but passes`);
            }
        }
        const verdict = failed > 0 ? 'failed' : count('SUCCESS') > 0 ? 'passed' : 'skipped';
        if (verdict === 'skipped' && count('SKIPPED') === 0) problems.push(`${scenario} (${revision}): nothing was checked`);
        const kind = run.startsWith('required-') ? 'required' : 'optional';
        rows.push([revision, kind, scenario, count('SUCCESS'), failed, count('SKIPPED'), verdict]);
    }
    if (status !== '0' && problems.length === before) problems.push(`${run}: the suite ended with status ${status}`);
}
for (const entry of expected) {
    if (!seen.has(entry)) problems.push(`${entry} is an expected failure, but was not run`);
}

const head = ['revision', 'kind', 'scenario', 'passed', 'failed', 'skipped', ''];
const table = [head, ...rows].map((row) => row.map(String));
const widths = head.map((_, column) => Math.max(...table.map((row) => row[column].length)));
const pad = (cell, column) => (column > 2 && column < 6 ? cell.padStart(widths[column]) : cell.padEnd(widths[column]));
for (const row of table) console.log(row.map(pad).join('  ').trimEnd());
const total = (column) => rows.reduce((sum, row) => sum + row[column], 0);
console.log(`\n${rows.length} scenarios: ${total(3)} checks passed, ${total(4)} failed, ${total(5)} skipped`);
for (const note of notes) console.log(note);
for (const problem of problems) console.log(`problem   ${problem}`);
process.exit(problems.length > 0 || rows.length === 0 ? 1 : 0);
