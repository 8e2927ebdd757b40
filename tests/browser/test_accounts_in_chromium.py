"""Signing in, what a session may do, and signing out, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.conftest import Server, serving
from browser.pages import wait_in_page

pytestmark = pytest.mark.needs_chromium

PASSWORD, ANOTHER = "a sentence to remember", "another sentence for it"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Maat that makes nobody an administrator without signing in, and one who may sign in."""
    folder: Path = tmp_path_factory.mktemp("accounts")
    with serving(folder, demo=True) as server:
        server.client.create_tenant("vision")
        for name, role in (("ann", "tenant_manager"), ("vic", "viewer")):
            body = {"name": name, "password": PASSWORD, "role": role, "tenant": "vision"}
            server.client.create_user(body)
        yield server


@pytest.fixture
def page(served: Server, chromium: Browser) -> Iterator[Page]:
    """A page that is not the local administrator's: a proxy's mark makes it remote."""
    context = chromium.new_context(extra_http_headers={"X-Forwarded-For": "10.0.0.9"})
    yield context.new_page()
    context.close()


def sign_in(page: Page, name: str, password: str = PASSWORD) -> None:
    page.locator("#sign-in-name").fill(name)
    page.locator("#sign-in-password").fill(password)
    page.locator("#sign-in-password").press("Enter")


def test_one_is_led_to_sign_in_and_back_and_out_again(page: Page, served: Server) -> None:
    page.goto(f"{served.url}/account?x=1")
    expect(page).to_have_url(f"{served.url}/sign-in?next=%2Faccount%3Fx%3D1")
    expect(page.locator("#navbar")).to_be_hidden()
    expect(page.locator("#sign-in-name")).to_be_focused()
    sign_in(page, "ann", "wrong")
    expect(page.locator("#sign-in-problem")).to_have_text("The name or the password is wrong.")
    expect(page.locator("#sign-in-password")).to_be_focused()
    sign_in(page, "ann")
    expect(page).to_have_url(f"{served.url}/account?x=1")
    expect(page.locator("#visitor")).to_have_text("ann")
    cookies = {one["name"]: one for one in page.context.cookies()}
    assert cookies["maat_session"]["httpOnly"]
    assert cookies["maat_session"]["sameSite"] == "Lax"
    assert "maat_session" not in page.evaluate("document.cookie")
    page.locator("#sign-out").click()
    expect(page).to_have_url(f"{served.url}/sign-in")
    assert page.context.cookies() == []


def test_whose_session_is_over_is_not_made_the_local_administrator_but_asked(
    served: Server, chromium: Browser
) -> None:
    """Here the browser is one of the machine itself, as after `make up`."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{served.url}/account")
    expect(page.locator("#visitor")).to_have_text("local")
    page.goto(f"{served.url}/sign-in?next=/account")
    sign_in(page, "vic")
    expect(page.locator("#visitor")).to_have_text("vic")
    served.client.sign_out_user("vic")
    page.locator("a.nav-link", has_text="Jobs").click()
    expect(page).to_have_url(re.compile(rf"{re.escape(served.url)}/sign-in\?next="))
    assert page.request.get(f"{served.url}/api/v1/me").status == 401
    page.get_by_role("button", name="Continue as the local administrator").click()
    expect(page).to_have_url(re.compile(rf"{re.escape(served.url)}/jobs"))
    expect(page.locator("#visitor")).to_have_text("local")
    assert context.cookies() == []
    context.close()


def test_nobody_else_is_offered_to_go_on_without_signing_in(page: Page, served: Server) -> None:
    with page.expect_response(lambda one: "sign-in-ways" in (one.request.post_data or "")) as told:
        page.goto(f"{served.url}/sign-in")
    changed = told.value.json()["response"]
    assert changed["sign-in-local"]["style"] == {"display": "none"}
    expect(page.locator("#sign-in-button")).to_be_visible()
    expect(page.locator("#sign-in-local")).to_be_hidden()


@pytest.mark.parametrize(
    "wanted",
    [
        "/x/..//evil.example",
        pytest.param("/\\evil.example/", marks=pytest.mark.long),
        pytest.param("https://evil.example/", marks=pytest.mark.long),
        pytest.param("/.//evil.example", marks=pytest.mark.long),
        pytest.param("//evil.example", marks=pytest.mark.long),
    ],
)
def test_signing_in_leads_to_no_other_site(page: Page, served: Server, wanted: str) -> None:
    page.goto(f"{served.url}/sign-in?{urlencode({'next': wanted})}")
    sign_in(page, "ann")
    expect(page).to_have_url(re.compile(rf"{re.escape(served.url)}/(\?cluster=\w+)?$"))


def test_the_pages_repeat_the_csrf_token_and_without_it_nothing_is_done(
    page: Page, served: Server
) -> None:
    page.goto(f"{served.url}/sign-in?next=/account")
    sign_in(page, "ann")
    page.locator("#account-token-name").fill("laptop")
    page.locator("#account-token-make").click()
    secret = page.locator("#account-token-made code")
    secret.wait_for()
    assert secret.inner_text().startswith("maat_")
    expect(page.locator("#account-tokens")).to_contain_text("laptop")
    status = page.evaluate(
        """fetch('/api/v1/tokens', {method: 'POST', body: '{"name": "stolen"}',
            headers: {'Content-Type': 'application/json'}}).then((answer) => answer.status)"""
    )
    assert status == 403
    page.locator("#account-tokens button", has_text="Revoke").click()
    expect(page.locator("#account-tokens")).to_contain_text("revoked")
    page.reload()
    expect(page.locator("#account-tokens")).to_contain_text("laptop")
    assert page.locator("#account-token-made code").count() == 0


def test_a_manager_makes_and_deactivates_a_user_and_a_viewer_is_not_offered_to(
    page: Page, served: Server
) -> None:
    page.goto(f"{served.url}/sign-in?next=/admin")
    sign_in(page, "ann")
    page.locator("#admin-new-name").fill("bob")
    page.locator("#admin-new-password").fill(PASSWORD)
    page.locator("#admin-new-make").click()
    row = page.locator("#admin-users tr", has_text="bob")
    row.get_by_role("button").click()
    roles = "window.dash_component_api.getLayout('admin-user-role').props.data.map((r) => r.value)"
    assert wait_in_page(page, roles) == ["viewer", "submitter", "tenant_manager"]
    page.locator("#admin-user-state").click()
    page.get_by_role("option", name="not active").click()
    page.locator("#admin-user-save").click()
    expect(row).to_contain_text("not active")
    page.get_by_role("link", name="Audit", exact=True).click()
    change = page.locator("#admin-audit tr", has_text="change user").first
    expect(change).to_contain_text("active: true -> false")
    expect(change).to_contain_text("ann")
    page.locator("#admin-audit-action").fill("create user")
    expect(page.locator("#admin-audit tbody tr").first).to_contain_text("name: bob")
    expect(page.locator("#admin-audit")).not_to_contain_text("change user")
    with page.expect_download() as saved:
        page.locator("#admin-audit-files a", has_text="CSV").click()
    assert "create user" in Path(saved.value.path()).read_text()
    page.locator("#sign-out").click()
    sign_in(page, "vic")
    expect(page.locator("#visitor")).to_have_text("vic")
    expect(page.locator("a.nav-link", has_text="Jobs")).to_be_visible()
    expect(page.locator("a.nav-link", has_text="Admin")).to_be_hidden()
    page.goto(f"{served.url}/admin")
    expect(page.locator("#admin-users")).to_contain_text("You may not do this")
    expect(page.locator("#admin-new-user")).to_be_hidden()
    page.goto(f"{served.url}/admin?tab=audit")
    expect(page.locator("#admin-audit")).to_contain_text("Auditors and cluster admins see")
    expect(page.locator("#admin-audit-more")).to_be_hidden()


@pytest.mark.long
def test_a_changed_password_keeps_this_browser_and_ends_the_others(
    page: Page, served: Server, chromium: Browser
) -> None:
    served.client.create_user({"name": "pat", "password": PASSWORD, "tenant": "vision"})
    other = chromium.new_context(extra_http_headers={"X-Forwarded-For": "10.0.0.9"}).new_page()
    for one in (other, page):
        one.goto(f"{served.url}/sign-in?next=/account")
        sign_in(one, "pat")
        expect(one.locator("#visitor")).to_have_text("pat")
    for field, value in (("old", PASSWORD), ("new", ANOTHER), ("again", ANOTHER)):
        page.locator(f"#account-{field}").fill(value)
    page.locator("#account-password").click()
    expect(page.locator("#account-password-said")).to_contain_text("The password is changed.")
    # The other page learns it by itself, and leads back to where it was.
    expect(other).to_have_url(f"{served.url}/sign-in?next=%2Faccount")
    other.context.close()
    page.locator("#account-elsewhere").click()
    expect(page.locator("#account-sessions")).to_contain_text("this one")


def test_who_may_not_ask_what_if_is_told_so_and_offered_no_button(
    page: Page, served: Server
) -> None:
    page.goto(f"{served.url}/sign-in?next=/cluster?add%3Dt4%253D1x4")
    sign_in(page, "vic")

    told = page.locator("#what-if-problem")
    expect(told).to_contain_text("You may not ask: that needs the right simulations:run")
    expect(told).to_contain_text("a viewer does not have")
    expect(page.locator("#what-if-ask")).to_be_hidden()
    expect(page.get_by_label("Add nodes by GPU type")).to_be_hidden()


def test_who_may_not_submit_is_told_so_and_cannot_press(page: Page, served: Server) -> None:
    page.goto(f"{served.url}/sign-in?next=/submit")
    sign_in(page, "vic")

    told = page.locator("#rights-note")
    expect(told).to_contain_text("and not submit jobs: the role viewer does not have")
    expect(page.locator("#submit-button")).to_be_disabled()
    page.locator("#submit-name").fill("not mine")
    page.keyboard.press("Enter")
    page.locator("#submit-name").blur()
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(told).to_contain_text("and not run simulations")
    expect(page.locator("#simulate-button")).to_be_disabled()
    page.goto(f"{served.url}/experiments")
    expect(page.locator("#autoscaling-button")).to_be_disabled()
    page.goto(f"{served.url}/measurements")
    expect(told).to_contain_text("and not upload measurements")
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(told).to_be_empty()
